"""Which sequences each optimizer step learns from: decided before the first one, and the same after an interruption."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_evaluator.training.tuning.packing import pack
from gpu_evaluator.training.tuning.recipe import Recipe
from gpu_evaluator.training.tuning.store import TokenStore

_IS_PACKED = ("next_token", "gate", "feedback")


@dataclass(frozen=True, slots=True)
class Turn:
    """Sequences of one forward pass. `counts`: False for one that only keeps the processes in step."""

    sequences: tuple[int, ...]
    counts: bool = True


class Plan:
    """The steps over a store. `weights`: how much of each sequence is learned, in tokens (an encoder's program: 1)."""

    def __init__(self, store: TokenStore, recipe: Recipe) -> None:
        self._recipe = recipe
        self.is_packed = recipe.objective in _IS_PACKED
        self.weights = learned(store, recipe)
        self._lengths = store.lengths
        packs = pack(store.lengths, recipe.length, recipe.seed) if self.is_packed else [[n] for n in range(len(store))]
        # A pack of which nothing is learned (documents of one token) has no gradient.
        self._units = [tuple(unit) for unit in packs if self.weights[unit].sum() > 0]
        self._epoch = -1  # the one that `_order` is for
        self.steps_an_epoch = math.ceil(len(self._units) / recipe.batch)
        self.steps = self.steps_an_epoch * recipe.epochs

    @property
    def units(self) -> int:
        """Packs, or programs of an encoder."""
        return len(self._units)

    @property
    def room(self) -> int:
        """Tokens that the packs could hold."""
        return len(self._units) * self._recipe.length

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(self._lengths.max(initial=0))

    def weight(self, step: int) -> int:
        """What all of a step's sequences weigh together."""
        return int(sum(self.weights[list(unit)].sum() for unit in self._chosen(step)))

    def tokens(self, step: int) -> int:
        return int(sum(self._lengths[list(unit)].sum() for unit in self._chosen(step)))

    def turns(self, step: int, rank: int, processes: int) -> list[Turn]:
        """The forward passes of one process; every process has equally many."""
        chosen = self._chosen(step)
        if not self.is_packed:  # alike in length, so that little is padded
            chosen.sort(key=lambda unit: int(self._lengths[unit[0]]), reverse=True)
        rows = 1 if self.is_packed else self._recipe.rows
        turns = []
        for start in range(0, len(chosen), rows * processes):
            mine = chosen[start : start + rows * processes][rank::processes]
            if mine:
                turns.append(Turn(tuple(number for unit in mine for number in unit)))
            else:
                turns.append(Turn(chosen[start], counts=False))
        return turns

    def _chosen(self, step: int) -> list[tuple[int, ...]]:
        epoch, place = divmod(step, self.steps_an_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng((self._recipe.seed, epoch)).permutation(len(self._units))
        batch = self._recipe.batch
        return [self._units[n] for n in self._order[place * batch : (place + 1) * batch]]


def learned(store: TokenStore, recipe: Recipe) -> NDArray[np.int64]:
    """How many predictions each sequence asks for."""
    if recipe.objective == "encoder":
        return np.ones(len(store), dtype=np.int64)
    if recipe.objective == "masked_token":
        inside = store.lengths - 2 * store.learned_from  # without the special tokens at both ends
        return np.asarray(np.maximum(1, np.round(recipe.mask * inside)), dtype=np.int64)
    return np.asarray(store.lengths - np.maximum(store.learned_from, 1), dtype=np.int64)
