"""Equations 1 to 3 over flat arrays, one element a step, for trainers that hold whole batches (needs numpy).

The same values as `services.rewards.algebra`, in tenths. Ids of groups and rollouts are any integers; two rollouts are
the same one only if both their group and their rollout id are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]
Booleans = npt.NDArray[np.bool_]

UNANNOTATED = 0
"""The beta, in arrays, of a step whose stage nobody judged."""

_ENUMERABLE = 4  # ids that span at most this many times their count are offset instead of sorted


def require_columns(**columns: Integers | Booleans) -> int:
    """The common length of one-dimensional columns; raises ValueError or TypeError, naming the column at fault."""
    length: int | None = None
    for name, column in columns.items():
        if column.ndim != 1:
            raise ValueError(f"{name} must have one dimension, not shape {column.shape}")
        if column.dtype.kind not in "iub":
            raise TypeError(f"{name} must hold integers or booleans, not {column.dtype}")
        if length is None:
            length = column.shape[0]
        elif column.shape[0] != length:
            raise ValueError(f"{name} has {column.shape[0]} elements where {length} are expected")
    return length or 0


def require_members(name: str, column: Integers, allowed: tuple[int, ...]) -> None:
    """Raises ValueError with the first element of `column` that is not in `allowed`."""
    wrong = ~np.isin(column, allowed)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name}[{at}] is {column[at]}, not one of {allowed}")


def codes(ids: Integers) -> tuple[npt.NDArray[np.int64], int]:
    """Ids renumbered from 0, order kept, and a bound on the numbers (linear in the count; not every number is used)."""
    if ids.size == 0:
        return np.zeros(0, np.int64), 0
    low, high = int(ids.min()), int(ids.max())
    if high - low < _ENUMERABLE * ids.size:
        wide = ids if ids.dtype.kind == "u" else ids.astype(np.int64)  # the difference of narrow signed ids may not fit
        return (wide - wide.min()).astype(np.int64), high - low + 1
    distinct, numbers = np.unique(ids, return_inverse=True)
    return numbers.astype(np.int64).reshape(-1), int(distinct.size)


def rollout_codes(group: Integers, rollout: Integers) -> tuple[npt.NDArray[np.int64], int]:
    """One number for each pair (group, rollout), and a bound on the numbers."""
    groups, _ = codes(group)
    rollouts, rollout_count = codes(rollout)
    return codes(groups * rollout_count + rollouts)


def process_band(group: Integers, rollout: Integers, alpha: Integers) -> Booleans:
    """For each element, whether its group's pass rate is in the process band (`services.rewards.band`).

    `alpha` (-1 or 1, 0 = unknown) is constant within a rollout; a rollout counts once however many steps it has. Raises
    ValueError when two elements of one rollout disagree.
    """
    require_columns(group=group, rollout=rollout, alpha=alpha)
    require_members("alpha", alpha, (-1, 0, 1))
    groups, group_bound = codes(group)
    rollouts, rollout_bound = rollout_codes(group, rollout)
    outcome = np.zeros(rollout_bound, np.int64)
    outcome[rollouts] = alpha
    if (outcome[rollouts] != alpha).any():
        at = int(np.argmax(outcome[rollouts] != alpha))
        raise ValueError(f"alpha[{at}] differs from that of another step of its rollout")
    home = np.zeros(rollout_bound, np.int64)
    home[rollouts] = groups
    passed = np.bincount(home[outcome > 0], minlength=group_bound)
    known = np.bincount(home[outcome != 0], minlength=group_bound)
    inside: Booleans = (known > 0) & ((passed == 0) | (4 * passed >= 3 * known))
    return inside[groups]


def reward_tenths(
    alpha: Integers, beta: Integers, gamma: Integers, in_band: Booleans, planning: Booleans
) -> npt.NDArray[np.int64]:
    """r of every step, in tenths (equations 1 to 3); planning steps get alpha.

    `alpha` -1 or 1; `beta` -1, 1 or `UNANNOTATED`; `gamma` -1 or 0. Raises ValueError outside these domains.
    """
    require_columns(alpha=alpha, beta=beta, gamma=gamma, in_band=in_band, planning=planning)
    require_members("alpha", alpha, (-1, 1))
    require_members("beta", beta, (-1, UNANNOTATED, 1))
    require_members("gamma", gamma, (-1, 0))
    outcome = 10 * alpha.astype(np.int64)
    base = outcome + np.where(alpha == 1, 5, 2) * beta
    penalised = np.where(gamma == -1, np.minimum(-10, base), base)
    return np.where(in_band & ~planning, penalised, outcome)


def in_statistics(beta: Integers, in_band: Booleans) -> Booleans:
    """Which steps enter their stage's mean and std: all but those that the band leaves without a beta."""
    require_columns(beta=beta, in_band=in_band)
    counted: Booleans = (beta != UNANNOTATED) | ~in_band.astype(bool)
    return counted
