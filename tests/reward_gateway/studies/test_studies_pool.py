"""The simulated pool against a reference that steps through every moment, and the laws of list scheduling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.studies.pool import InOrder, PoolBatch, run_pool

SECONDS = st.lists(st.integers(1, 9), min_size=1, max_size=7)


@dataclass
class Given(InOrder):
    """Priorities that are given, by check."""

    priorities: list[int]

    def first(self, checks: object) -> list[tuple[int, int]]:
        return list(enumerate(self.priorities))


@dataclass
class Raised(InOrder):
    """All checks alike, until one is moved to the front at a moment."""

    favourite: int
    pause_s: float = 1.0

    def raises(self, at_s: float, waiting: set[int], ended: set[int]) -> dict[int, int]:
        return {self.favourite: 5} if self.favourite in waiting else {}


def by_moments(batches: list[tuple[int, int | None, list[int], list[int]]], workers: int) -> list[list[float]]:
    """(arrival, cutoff, seconds, priorities) of each batch, all integers: what happens in every second, one by one."""
    rounds, served = [0] * len(batches), 0
    ends = [[math.inf] * len(seconds) for _, _, seconds, _ in batches]
    waiting: list[tuple[int, int, int, int]] = []
    running: dict[tuple[int, int], int] = {}
    queued = 0
    for now in range(300):
        for (number, check), end in list(running.items()):
            if end == now:
                del running[number, check]
                ends[number][check] = now - batches[number][0]
        for number, (arrival, cutoff, _, _) in enumerate(batches):
            if cutoff is not None and now == arrival + cutoff:
                waiting = [one for one in waiting if one[2] != number]
                running = {key: end for key, end in running.items() if key[0] != number}
        for number, (arrival, _, seconds, priorities) in enumerate(batches):
            if now == arrival:
                rounds[number] = served + 1
                for check in range(len(seconds)):
                    waiting.append((-priorities[check], queued, number, check))
                    queued += 1
        while waiting and len(running) < workers:
            turn = min((rounds[number], number) for _, _, number, _ in waiting)[1]
            first = min(one for one in waiting if one[2] == turn)
            waiting.remove(first)
            _, _, number, check = first
            served = rounds[number]
            rounds[number] += 1
            running[number, check] = now + batches[number][2][check]
    return ends


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[int, int | None, list[int], list[int]]]:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        seconds = draw(SECONDS)
        priorities = draw(st.lists(st.integers(0, 2), min_size=len(seconds), max_size=len(seconds)))
        made.append((draw(st.integers(0, 10)), draw(st.none() | st.integers(1, 15)), seconds, priorities))
    return made


@given(batches(), st.integers(1, 4))
def test_the_pool_does_what_a_walk_through_every_second_does(
    given: list[tuple[int, int | None, list[int], list[int]]], workers: int
) -> None:
    pool = [
        PoolBatch(np.array(s, float), float(at), math.inf if cut is None else float(cut), Given(priorities))
        for at, cut, s, priorities in given
    ]
    assert [list(ends) for ends in run_pool(pool, workers).ends] == by_moments(given, workers)


@given(SECONDS, st.integers(1, 6))
def test_no_worker_idles_while_checks_wait(seconds: list[int], workers: int) -> None:
    run = run_pool([PoolBatch(np.array(seconds, float))], workers)
    last, total, longest = float(run.ends[0].max()), sum(seconds), max(seconds)
    assert run.busy_s[0] == pytest.approx(total)
    assert max(total / workers, longest) - 1e-9 <= last <= total / workers + longest * (1 - 1 / workers) + 1e-9


@given(SECONDS, st.integers(1, 6))
def test_in_order_one_worker_more_makes_no_check_end_later(seconds: list[int], workers: int) -> None:
    fewer, more = (run_pool([PoolBatch(np.array(seconds, float))], w).ends[0] for w in (workers, workers + 1))
    assert (more <= fewer + 1e-9).all()


@given(batches(), st.integers(1, 4))
def test_a_cancelled_check_costs_what_it_used_and_nothing_runs_beyond_a_cutoff(
    given: list[tuple[int, int | None, list[int], list[int]]], workers: int
) -> None:
    pool = [
        PoolBatch(np.array(s, float), float(at), math.inf if cut is None else float(cut)) for at, cut, s, _ in given
    ]
    run = run_pool(pool, workers)
    for batch, ends, busy_s in zip(pool, run.ends, run.busy_s, strict=True):
        ended = np.isfinite(ends)
        assert (ends[ended] <= batch.cutoff_s).all()
        assert batch.seconds[ended].sum() - 1e-9 <= busy_s <= batch.seconds.sum() + 1e-9
        assert busy_s <= workers * batch.cutoff_s


def test_a_verdict_at_the_cutoff_is_in_time() -> None:
    (ends,) = run_pool([PoolBatch(np.array([5.0, 5.1]), cutoff_s=5.0)], 2).ends
    assert list(ends) == [5.0, math.inf]


def test_a_check_that_never_ends_holds_its_worker_until_the_cutoff() -> None:
    run = run_pool([PoolBatch(np.array([math.inf, 1.0]), cutoff_s=8.0), PoolBatch(np.array([3.0]))], 1)
    assert [list(ends) for ends in run.ends] == [[math.inf, math.inf], [11.0]]
    assert list(run.busy_s) == [8.0, 3.0]


def test_a_raised_check_overtakes() -> None:
    (ends,) = run_pool([PoolBatch(np.array([4.0, 4.0, 4.0]), ordering=Raised(favourite=2))], 1).ends
    assert list(ends) == [4.0, 12.0, 8.0]


def test_there_is_no_pool_without_a_worker() -> None:
    with pytest.raises(ValueError, match="at least one is needed"):
        run_pool([], 0)


def test_a_small_batch_takes_turns_with_a_large_one_that_came_before() -> None:
    large, small = run_pool([PoolBatch(np.full(10, 1.0)), PoolBatch(np.full(2, 1.0), arrival_s=2.5)], 1).ends
    assert list(small) == [2.5, 4.5]
    assert large.max() == 12.0
