"""The tensors of one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gpu_evaluator.training.tuning.recipe import Recipe
from gpu_evaluator.training.tuning.store import TokenStore

_MASKED, _RANDOM = 0.8, 0.1  # of the tokens that are predicted; the others stay as they are (BERT)


@dataclass(frozen=True, slots=True)
class Batch:
    """`inputs` go to the model; `where` are flat places of its output, which should say `targets`."""

    inputs: dict[str, Any]
    where: Any
    targets: Any

    def to(self, device: Any) -> Batch:
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.where.to(device), self.targets.to(device))


def packed(store: TokenStore, sequences: Sequence[int]) -> Batch:
    """One row of whole sequences, each of which sees itself alone. Shape (1, tokens).

    The positions begin again with each; where they do, transformers ends attention, since it is given no mask.
    """
    tokens = [store[n] for n in sequences]
    starts = np.cumsum([0, *map(len, tokens)])
    where, targets = [], []
    for number, start, row in zip(sequences, starts, tokens, strict=False):
        first = max(int(store.learned_from[number]), 1)
        where.append(np.arange(start + first - 1, start + len(row) - 1))
        targets.append(row[first:])
    inputs = {
        "input_ids": _tensor(np.concatenate(tokens))[None],
        "position_ids": _tensor(np.concatenate([np.arange(len(row)) for row in tokens]))[None],
    }
    return Batch(inputs, _tensor(np.concatenate(where)), _tensor(np.concatenate(targets)))


def classified(store: TokenStore, sequences: Sequence[int], padding: int) -> Batch:
    """A row for each program, padded on the right; the class of each is learned."""
    return Batch(
        _padded([store[n] for n in sequences], padding),
        torch.arange(len(sequences)),
        _tensor(store.labels[list(sequences)]),
    )


def masked(
    store: TokenStore,
    sequences: Sequence[int],
    weights: Sequence[int],
    recipe: Recipe,
    step: int,
    *,
    padding: int,
    mask: int,
    vocabulary: int,
) -> Batch:
    """A row for each part of a document, in which as many tokens as `weights` says are to be guessed.

    Of these 80% are replaced by `mask`, 10% by a random token. What is drawn depends on the seed, the step and the
    sequence alone.
    """
    rows, where, targets = [], [], []
    longest = max(int(store.lengths[n]) for n in sequences)
    for place, (number, count) in enumerate(zip(sequences, weights, strict=True)):
        row, edge = store[number], int(store.learned_from[number])
        draw = np.random.default_rng((recipe.seed, step, number))
        chosen = np.sort(draw.choice(np.arange(edge, len(row) - edge), size=count, replace=False))
        where.append(chosen + place * longest)
        targets.append(row[chosen])
        chance = draw.random(count)
        replaced = np.where(chance < _MASKED, mask, draw.integers(0, vocabulary, count))
        row[chosen] = np.where(chance < _MASKED + _RANDOM, replaced, row[chosen])
        rows.append(row)
    return Batch(_padded(rows, padding), _tensor(np.concatenate(where)), _tensor(np.concatenate(targets)))


def _padded(rows: Sequence[Any], padding: int) -> dict[str, Any]:
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), padding, dtype=np.int64)
    seen = np.zeros((len(rows), longest), dtype=np.int64)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
        seen[place, : len(row)] = 1
    return {"input_ids": _tensor(tokens), "attention_mask": _tensor(seen)}


def _tensor(values: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64))
