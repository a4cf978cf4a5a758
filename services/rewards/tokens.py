"""From one value a step to one value a token (needs numpy).

A span is the half-open range of token positions that a step's own tokens take in one sequence. Tokens outside every
span (prompts, observations) get 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from services.rewards.arrays import Integers, require_columns

Floats = npt.NDArray[np.float64]


def token_advantages(advantage: Floats, starts: Integers, ends: Integers, length: int) -> Floats:
    """Every token of a step gets the step's advantage: shape (length,).

    Raises ValueError for spans that are reversed, overlap, or leave the sequence.
    """
    return _spread(advantage, starts, ends, length)


def token_weights(weight: Floats, starts: Integers, ends: Integers, length: int) -> Floats:
    """The step's weight shared equally by its tokens, so that they sum to it: shape (length,).

    For a loss that sums over tokens; each token of a step counts 1/(G m n_ij * tokens of the step). A step without
    tokens has nothing to share. Raises ValueError as `token_advantages` does.
    """
    return _spread(weight / np.maximum(1, ends - starts), starts, ends, length)


def _spread(values: Floats, starts: Integers, ends: Integers, length: int) -> Floats:
    count = require_columns(starts=starts, ends=ends)
    if values.shape != (count,):
        raise ValueError(f"{values.shape[0] if values.ndim == 1 else values.shape} values for {count} spans")
    if count and (starts.min() < 0 or ends.max() > length):
        raise ValueError(f"a span leaves the sequence of {length} tokens")
    if (ends < starts).any():
        raise ValueError(f"span {int(np.argmax(ends < starts))} ends before it starts")
    sizes = ends - starts
    filled = sizes > 0
    order = np.argsort(starts[filled], kind="stable")
    first, last = starts[filled][order], ends[filled][order]
    if (first[1:] < last[:-1]).any():
        raise ValueError(f"two spans share token {int(first[1:][first[1:] < last[:-1]][0])}")
    inside = np.zeros(length + 1, np.int64)
    np.add.at(inside, first, 1)
    np.add.at(inside, last, -1)
    out = np.zeros(length)
    out[np.cumsum(inside[:length]).astype(bool)] = np.repeat(values[filled][order], sizes[filled][order])
    return out
