"""Who gets in when it is nearly full, and what the refused are told."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.limits.admission import Admission, share_of
from reward_gateway.limits.drain import DrainRate
from services.runtime.problems import ProblemError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_lowest_priority_is_refused_first_and_the_highest_last() -> None:
    admission = Admission(max_batches=100, max_candidates=1000)
    admission.count("a", 850)
    with pytest.raises(ProblemError) as refused:
        admission.admit("a", 1, share=share_of(-100, 0.8))
    assert refused.value.code.value == "too_much_in_flight"
    admission.admit("a", 1, share=share_of(0, 0.8))
    admission.count("a", 100)
    with pytest.raises(ProblemError):
        admission.admit("a", 1, share=share_of(0, 0.8))
    admission.admit("a", 1, share=share_of(100, 0.8))


@given(st.integers(-100, 100), st.integers(-100, 100), st.floats(0.01, 1))
def test_a_higher_priority_may_never_fill_less(one: int, other: int, shed_from: float) -> None:
    low, high = sorted((one, other))
    assert shed_from <= share_of(low, shed_from) <= share_of(high, shed_from) <= 1 + 1e-9


def test_one_caller_cannot_take_what_there_is() -> None:
    admission = Admission(max_batches=100, max_candidates=1000, shared=True)
    for _ in range(75):
        admission.admit("greedy", 10)
    for _ in range(5):  # four times what is free, which is less each time
        with contextlib.suppress(ProblemError):
            admission.admit("greedy", 10)
    assert admission.candidates <= 800
    with pytest.raises(ProblemError, match="of this key"):
        admission.admit("greedy", 10)
    admission.admit("late", 100)
    admission.admit("later", 50)


def test_the_only_caller_may_take_it_all() -> None:
    admission = Admission(max_batches=1000, max_candidates=1000)
    for _ in range(100):
        admission.admit("anonymous", 10)


def test_the_retry_is_the_time_that_the_excess_takes() -> None:
    clock = Clock()
    admission = Admission(max_batches=100, max_candidates=100, clock=clock)
    admission.count("a", 50)
    admission.count("a", 50)
    clock.now = 10.0
    admission.leave("a", 50)  # five a second
    with pytest.raises(ProblemError) as refused:
        admission.admit("a", 70)
    assert refused.value.retry_after_s == 4
    clock.now = 14.0
    admission.leave("a", 50)
    admission.admit("a", 70)


def test_callers_who_wait_for_the_same_room_are_told_different_times() -> None:
    clock = Clock()
    admission = Admission(max_batches=100, max_candidates=100, clock=clock)
    admission.count("a", 100)
    admission.count("a", 10)
    clock.now = 1.0
    admission.leave("a", 10)  # ten a second
    told = []
    for owner in ("b", "c", "d", "c"):  # c does not wait, which gains and costs it nothing
        with pytest.raises(ProblemError) as refused:
            admission.admit(owner, 50)
        told.append(refused.value.retry_after_s)
    assert told == [5, 10, 15, 15]


def test_the_rate_forgets_what_is_long_ago_and_ignores_time_without_work() -> None:
    clock = Clock()
    drain = DrainRate(clock)
    assert drain.rate == 0
    clock.now = 10.0
    drain.add(100)
    assert drain.rate == 10
    clock.now = 40.0
    drain.add(20)
    assert drain.rate == 3
    clock.now = 90.0
    assert drain.rate == pytest.approx(20 / 60)
    clock.now = 1000.0
    drain.restart()
    clock.now = 1001.0
    assert drain.rate == 0  # it had come to a stop before
    drain.add(50)
    assert drain.rate == 50
    drain.restart()
    clock.now = 1030.0
    assert drain.rate == 50  # nothing has left since, and there is no better guess
    clock.now = 1070.0
    assert drain.rate == 0  # a minute of work without any
