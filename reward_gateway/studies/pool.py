"""A pool of Lean workers in virtual time: turns between batches, priorities within, cancellation at the cutoff.

A discrete-event simulation of what the queue and the workers do (`services/queue/scripts/_shared.lua`): batches take
turns, whatever their size; a batch that comes joins the round after the one being served. Whose turn it is gives its
waiting check of the highest priority, then the one that was queued first. At a batch's cutoff its waiting checks leave
the line and its running ones stop. Workers are alike, and callers are of one band of priority. No I/O, no randomness.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np

from reward_gateway.studies.cohort import Numbers


class Ordering(Protocol):
    """Which checks of a batch run first; checks are numbers from 0."""

    def first(self, checks: Sequence[int]) -> list[tuple[int, int]]:
        """The checks in the order in which to queue them, with their priorities."""
        ...

    def raises(self, at_s: float, waiting: set[int], ended: set[int]) -> Mapping[int, int]:
        """Higher priorities, `at_s` after the batch came."""
        ...

    @property
    def pause_s(self) -> float:
        """Time between two calls of `raises`; inf where priorities never change."""
        ...


class InOrder:
    """First come, first served."""

    pause_s = math.inf

    def first(self, checks: Sequence[int]) -> list[tuple[int, int]]:
        return [(check, 0) for check in checks]

    def raises(self, at_s: float, waiting: set[int], ended: set[int]) -> Mapping[int, int]:
        return {}


@dataclass(slots=True)
class PoolBatch:
    """Checks that come together at `arrival_s` and are cancelled `cutoff_s` later.

    `seconds` (n,): how long each holds a worker; inf never ends by itself.
    """

    seconds: Numbers
    arrival_s: float = 0.0
    cutoff_s: float = math.inf
    ordering: Ordering = field(default_factory=InOrder)


@dataclass(frozen=True, slots=True)
class PoolRun:
    """`ends`: for each batch (n,), when each check ended, since the batch came; inf where it was cancelled.

    `busy_s` (b,): time that workers spent on its checks, the cancelled ones included.
    """

    ends: list[Numbers]
    busy_s: Numbers


class _Event(IntEnum):
    """In the order in which events of one moment count: a verdict at the cutoff is in time."""

    ENDED = 0
    CUTOFF = 1
    ARRIVAL = 2
    RAISE = 3


class _State:
    """One batch while it runs."""

    def __init__(self, batch: PoolBatch) -> None:
        self.batch = batch
        self.ends = np.full(len(batch.seconds), np.inf)
        self.waiting: set[int] = set()
        self.running: dict[int, float] = {}
        self.ended: set[int] = set()
        self.place: dict[int, int] = {}
        self.line: list[tuple[int, int, int]] = []  # (-priority, place, check); one that was raised stands here twice

    def next(self) -> int:
        """Take the check that is first in line; one waits."""
        while True:
            check = heapq.heappop(self.line)[2]
            if check in self.waiting:
                self.waiting.discard(check)
                return check


def run_pool(batches: Sequence[PoolBatch], workers: int) -> PoolRun:
    """Simulate until every check has ended or was cancelled. Raises `ValueError` without a worker."""
    if workers < 1:
        raise ValueError(f"{workers} workers; at least one is needed")
    states = [_State(batch) for batch in batches]
    count = itertools.count()
    turns: list[tuple[int, int]] = []  # (round, batch), of the batches with waiting checks
    served = 0  # the round that is being served
    events = [(batch.arrival_s, _Event.ARRIVAL, number, 0) for number, batch in enumerate(batches)]
    heapq.heapify(events)
    idle, busy_s = workers, np.zeros(len(batches))

    while events:
        at, event, number, check = heapq.heappop(events)
        if math.isinf(at):
            break
        state = states[number]
        batch = state.batch
        if event is _Event.ENDED:
            if check in state.running:  # else it was cancelled at the cutoff
                busy_s[number] += at - state.running.pop(check)
                state.ends[check] = at - batch.arrival_s
                state.ended.add(check)
                idle += 1
        elif event is _Event.CUTOFF:
            busy_s[number] += sum(at - since for since in state.running.values())
            idle += len(state.running)
            state.running.clear()
            state.waiting.clear()
        elif event is _Event.ARRIVAL:
            for check, priority in batch.ordering.first(range(len(batch.seconds))):
                state.place[check] = next(count)
                heapq.heappush(state.line, (-priority, state.place[check], check))
                state.waiting.add(check)
            heapq.heappush(turns, (served + 1, number))
            if math.isfinite(batch.cutoff_s):
                heapq.heappush(events, (batch.arrival_s + batch.cutoff_s, _Event.CUTOFF, number, 0))
            if math.isfinite(batch.ordering.pause_s):
                heapq.heappush(events, (at + batch.ordering.pause_s, _Event.RAISE, number, 0))
        elif state.waiting:
            for check, priority in batch.ordering.raises(at - batch.arrival_s, state.waiting, state.ended).items():
                heapq.heappush(state.line, (-priority, state.place[check], check))
            heapq.heappush(events, (at + batch.ordering.pause_s, _Event.RAISE, number, 0))
        if events and events[0][0] == at:
            continue  # all that happens in this moment, before anybody takes a check
        while idle and turns:
            turn, number = heapq.heappop(turns)
            state = states[number]
            if state.waiting:
                check = state.next()
                idle -= 1
                served = turn
                state.running[check] = at
                heapq.heappush(turns, (turn + 1, number))
                heapq.heappush(events, (at + float(state.batch.seconds[check]), _Event.ENDED, number, check))
    return PoolRun([state.ends for state in states], busy_s)
