"""Several examples in one sequence of fixed length, and texts cut into such sequences."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import numpy as np


def pack(lengths: Sequence[int], capacity: int, seed: int) -> list[list[int]]:
    """Indices of examples, grouped so that no group is longer than `capacity`; every example is in exactly one group.

    Best fit over the examples in random order: an example goes where it leaves the least room. The order keeps examples
    of all lengths mixed, which first-fit over sorted lengths does not, at little cost in room.

    Raises:
        ValueError: an example is empty or longer than `capacity`.
    """
    if not len(lengths):
        return []
    shortest, longest = min(lengths), max(lengths)
    if shortest < 1 or longest > capacity:
        raise ValueError(f"examples of {shortest} to {longest} tokens do not all fit packs of {capacity}")
    packs: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # (room that is left, number of the pack), sorted; full packs are not in it
    for index in np.random.default_rng(seed).permutation(len(lengths)).tolist():
        length = int(lengths[index])
        place = bisect_left(rooms, (length, -1))
        if place == len(rooms):
            room, number = capacity, len(packs)
            packs.append([])
        else:
            room, number = rooms.pop(place)
        packs[number].append(index)
        if room - length >= shortest:
            insort(rooms, (room - length, number))
    return packs


def windows(length: int, limit: int) -> Iterator[tuple[int, int]]:
    """(start, end) of consecutive parts of at most `limit` that cover a text of `length` tokens."""
    for start in range(0, length, limit):
        yield start, min(start + limit, length)
