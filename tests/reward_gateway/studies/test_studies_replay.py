"""Equation 8 on cohorts: against the equation itself, the order of the candidates, the report's shares and hours."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.scheduling.check_time import SIZE
from reward_gateway.scheduling.policies import SchedulingPolicy
from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, CohortError, Predictions
from reward_gateway.studies.evaluators import EvaluatorCost, Rates, draw, synthetic_predictions
from reward_gateway.studies.ordering import foretell
from reward_gateway.studies.replay import Options, replay
from reward_gateway.studies.report import make_report
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict

WORDS = {Verdict.VALID: YES, Verdict.INVALID: NO, Verdict.UNKNOWN: OPEN}


def cohort_of(
    seconds: list[float],
    verdict: list[int] | None = None,
    *,
    rejected: set[int] = frozenset(),  # type: ignore[assignment]
    batches: int = 1,
    said: list[int] | None = None,
    said_at_s: float = 1.0,
    limit_s: float = 60.0,
) -> Cohort:
    """Candidates with the given times (inf: Lean never answers), spread evenly over batches."""
    n = len(seconds)
    asked = np.array([i not in rejected for i in range(n)])
    words = np.array(verdict if verdict is not None else [YES] * n)
    times = np.array(seconds, float)
    return Cohort(
        name="made",
        batch=np.arange(n) * batches // n,
        check=np.arange(n),
        group=np.arange(n) // 2,
        problem=np.full(n, -1),
        precheck=[Reason.NO_CODE if i in rejected else None for i in range(n)],
        asked=asked,
        seconds=times,
        verdict=np.where(np.isfinite(times), words, OPEN),
        limit_s=np.full(n, limit_s),
        dead_s=np.full(n, np.inf),
        known=asked,
        cached_s=np.full(n, np.inf),
        answered_s=np.full(n, np.inf),
        features=np.ones((n, SIZE)),
        predictions=None
        if said is None
        else Predictions(np.array(said), np.full(n, said_at_s), np.where(np.array(said) == YES, 0.9, 0.1)),
        arrival_s=np.zeros(batches),
        engines=np.zeros(batches, dtype=np.int64),
        timeout_s=np.full(batches, limit_s),
        ended_s=np.full(batches, np.inf),
    )


def verdicts(cohort: Cohort, options: Options) -> list[int]:
    return [WORDS[d.verdict] for d in replay(cohort, options, cohort.predictions).decisions]


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    n = draw(st.integers(1, 12))
    seconds = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0, 7.0, math.inf]), min_size=n, max_size=n))
    words = draw(st.lists(st.sampled_from([YES, NO]), min_size=n, max_size=n))
    said = draw(st.lists(st.sampled_from([YES, NO, OPEN]), min_size=n, max_size=n))
    return cohort_of(seconds, words, rejected=draw(st.sets(st.integers(0, n - 1), max_size=3)), said=said)


OPTIONS = st.builds(
    Options,
    workers=st.integers(1, 4),
    timeout_s=st.sampled_from([2.0, 5.0, 60.0]),
    cutoff_s=st.sampled_from([1.0, 4.0, 9.0, math.inf]),
    policy=st.sampled_from(list(SchedulingPolicy)),
)


def test_a_batch_at_its_cutoff_by_hand() -> None:
    cohort = cohort_of(
        [2.0, 3.0, 100.0, 4.0, 1.0], [YES, NO, YES, YES, YES], rejected={4}, said=[NO, YES, YES, NO, YES]
    )
    came = replay(cohort, Options(workers=1, timeout_s=10.0, cutoff_s=16.0), cohort.predictions)
    assert [(d.source, d.verdict, d.lean_status) for d in came.decisions] == [
        (Source.LEAN, Verdict.VALID, LeanStatus.OK),  # ends at 2
        (Source.LEAN, Verdict.INVALID, LeanStatus.OK),  # at 5
        (Source.CASCADE, Verdict.VALID, LeanStatus.TIMEOUT),  # at 15
        (Source.CASCADE, Verdict.INVALID, LeanStatus.CANCELLED),
        (Source.PRECHECK, Verdict.INVALID, LeanStatus.SKIPPED),
    ]
    assert list(came.busy_s) == [16.0]


@given(cohorts(), OPTIONS)
def test_every_candidate_gets_what_equation_8_says(cohort: Cohort, options: Options) -> None:
    options = replace(options, policy=SchedulingPolicy.FIFO)
    free = [0.0] * options.workers
    expected = []
    for i, reason in enumerate(cohort.precheck):
        if reason is not None:
            expected.append(NO)
            continue
        worker = free.index(min(free))
        free[worker] += min(cohort.seconds[i], options.timeout_s)
        in_time = free[worker] <= options.cutoff_s and cohort.seconds[i] < options.timeout_s
        expected.append(int(cohort.verdict[i] if in_time else cohort.predictions.verdict[i]))  # type: ignore[union-attr]
    assert verdicts(cohort, options) == expected


@given(cohorts(), OPTIONS, st.randoms())
def test_the_order_of_the_candidates_changes_nothing_where_nobody_waits(
    cohort: Cohort, options: Options, random: object
) -> None:
    order = np.array(sorted(range(len(cohort)), key=lambda _: random.random()))  # type: ignore[attr-defined]
    shuffled = replace(
        cohort,
        seconds=cohort.seconds[order],
        verdict=cohort.verdict[order],
        precheck=[cohort.precheck[i] for i in order],
        asked=cohort.asked[order],
        known=cohort.known[order],
        group=cohort.group[order],
        predictions=cohort.predictions.take(order),  # type: ignore[union-attr]
    )
    many = replace(options, workers=len(cohort))
    assert verdicts(shuffled, many) == [verdicts(cohort, many)[i] for i in order]


@given(cohorts(), OPTIONS)
def test_shares_are_parts_and_add_up(cohort: Cohort, options: Options) -> None:
    report = make_report(cohort, options, cohort.predictions, replay(cohort, options, cohort.predictions))
    shares = [report.lean_share, report.evaluator_share, report.precheck_share, report.unknown_share]
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) == pytest.approx(1)
    assert report.agreement is None or 0 <= report.agreement <= 1
    assert report.scoring_s <= options.cutoff_s
    assert report.lean_busy_h <= report.lean_pool_h + 1e-12 or report.scoring_s < options.cutoff_s


@given(cohorts(), OPTIONS)
def test_a_later_cutoff_takes_no_verdict_of_lean_away(cohort: Cohort, options: Options) -> None:
    options = replace(options, policy=SchedulingPolicy.FIFO)
    early, late = (
        [d.source is Source.LEAN for d in replay(cohort, replace(options, cutoff_s=c), cohort.predictions).decisions]
        for c in (3.0, 8.0)
    )
    assert all(after or not before for before, after in zip(early, late, strict=True))


def test_timeouts_withhold_rewards_from_lean_alone_and_not_from_a_hybrid_batch() -> None:
    cohort = cohort_of([1.0, 30.0, 80.0], [YES, YES, YES], said=[YES, YES, NO])
    options = Options(workers=3, timeout_s=20.0)
    alone = make_report(cohort, options, None, replay(cohort, options, None))
    assert (alone.timeouts, alone.withheld, alone.withheld_valid) == (2, 2, 2)
    hybrid = make_report(cohort, options, cohort.predictions, replay(cohort, options, cohort.predictions))
    assert (hybrid.timeouts, hybrid.withheld, hybrid.labelled) == (2, 0, 2)
    assert (hybrid.agreement, hybrid.false_negatives) == (1.0, 0)


def test_step_time_and_hours_are_those_of_equation_9() -> None:
    cohort = cohort_of([100.0] * 4, said=[YES] * 4, said_at_s=90.0, limit_s=1000.0)
    hybrid = Options(workers=2, timeout_s=1000.0, at_evaluators_end=True)
    report = make_report(cohort, hybrid, cohort.predictions, replay(cohort, hybrid, cohort.predictions))
    assert (report.scoring_s, report.step_s) == (90.0, 720.0)
    assert report.lean_busy_h == pytest.approx(2 * 90 / 3600)
    assert report.evaluator_gpu_h == pytest.approx(8 * 90 / 3600)
    assert report.step_gpu_h == pytest.approx(8 * 720 / 3600)
    alone = Options(workers=2, timeout_s=1000.0)
    assert make_report(cohort, alone, None, replay(cohort, alone, None)).step_s == 630 + 200


def test_the_gpus_of_training_wait_for_lean_too_and_the_evaluator_holds_none_after_the_cutoff() -> None:
    cohort = cohort_of([100.0] * 4, said=[YES] * 4, said_at_s=90.0, limit_s=1000.0)
    early = Options(workers=4, timeout_s=1000.0, cutoff_s=36.0)
    report = make_report(cohort, early, cohort.predictions, replay(cohort, early, cohort.predictions), rest_s=0)
    assert report.evaluator_gpu_h == report.step_gpu_h == pytest.approx(8 * 36 / 3600)
    alone = make_report(cohort, early, None, replay(cohort, early, None), rest_s=0)
    assert (alone.evaluator_gpu_h, alone.step_gpu_h) == (0.0, report.step_gpu_h)


def test_a_batch_without_predictions_ends_with_lean_beside_others_that_end_with_the_evaluator() -> None:
    cohort = cohort_of([5.0, 50.0, 5.0, 7.0, 1.0, 1.0], rejected={4, 5}, batches=3, said=[YES] * 6, said_at_s=20.0)
    assert cohort.predictions is not None
    only_first = replace(cohort.predictions, at_s=np.where(cohort.batch == 0, 20.0, np.inf))
    came = replay(cohort, Options(workers=2, at_evaluators_end=True), only_first)
    assert list(came.scoring_s) == [20.0, 7.0, 0.0]
    assert [d.source for d in came.decisions[:4]] == [Source.LEAN, Source.CASCADE, Source.LEAN, Source.LEAN]


def test_identical_programs_are_checked_once_and_cached_ones_never() -> None:
    cohort = cohort_of([5.0, 5.0, 5.0])
    twins = replace(cohort, check=np.array([0, 0, 1]), cached_s=np.array([math.inf, math.inf, 0.25]))
    came = replay(twins, Options(workers=1), None)
    assert [d.source for d in came.decisions] == [Source.LEAN] * 3
    assert (list(came.busy_s), list(came.scoring_s)) == ([5.0], [5.0])


def test_a_check_that_kills_its_worker_is_left_to_nobody() -> None:
    cohort = replace(cohort_of([math.inf, 1.0], said=[YES, YES]), dead_s=np.array([2.0, math.inf]))
    came = replay(cohort, Options(workers=1, cutoff_s=10.0), cohort.predictions)
    assert (came.decisions[0].verdict, came.decisions[0].lean_status) == (Verdict.UNKNOWN, LeanStatus.CRASHED)


def test_workers_that_share_cores_slow_each_other_down_and_time_out_more() -> None:
    cohort = cohort_of([4.0] * 8)
    four = Options(workers=4, timeout_s=7.0, cores=2.0)
    assert list(replay(cohort, replace(four, timeout_s=60.0), None).scoring_s) == [16.0]
    assert all(d.lean_status is LeanStatus.TIMEOUT for d in replay(cohort, four, None).decisions)
    assert list(four.slowed(np.array([0, 2, 4, 8]))) == [2.0, 2.0, 1.0, 0.5]


def test_value_checks_first_what_the_evaluator_doubts() -> None:
    cohort = cohort_of([10.0] * 6, said=[YES] * 6)
    predictions = Predictions(np.full(6, YES), np.zeros(6), np.array([0.99, 0.99, 0.99, 0.99, 0.99, 0.5]))
    options = Options(workers=1, cutoff_s=20.0, policy=SchedulingPolicy.VALUE)
    lone = replace(cohort, group=np.full(6, -1))
    decided = [d.source for d in replay(lone, options, predictions).decisions]
    assert decided.count(Source.LEAN) == 2
    assert decided[5] is Source.LEAN


def test_a_policy_or_cutoff_that_the_cohort_cannot_serve_is_refused() -> None:
    cohort = replace(cohort_of([1.0]), features=None)
    with pytest.raises(CohortError, match="needs the features"):
        replay(cohort, Options(workers=1, policy=SchedulingPolicy.SHORTEST), None)
    with pytest.raises(CohortError, match="needs predictions"):
        replay(cohort, Options(workers=1, at_evaluators_end=True), None)


@pytest.mark.parametrize("rates", [Rates(0.851, 0.116), Rates(0.5, 0.4), Rates(0.99, 0.01)])
def test_a_synthetic_evaluator_has_its_rates_and_is_calibrated(rates: Rates) -> None:
    rng = np.random.default_rng(1)
    truth = np.where(rng.random(200_000) < 0.6, YES, NO)
    said, chance = draw(truth, rates, rng)
    assert (said[truth == YES] == YES).mean() == pytest.approx(rates.true_positive, abs=0.005)
    assert (said[truth == NO] == YES).mean() == pytest.approx(rates.false_positive, abs=0.005)
    for low in (0.1, 0.4, 0.7):
        near = (chance >= low) & (chance < low + 0.2)
        if near.sum() > 2_000:
            assert (truth[near] == YES).mean() == pytest.approx(chance[near].mean(), abs=0.03)


@pytest.mark.parametrize("rate", [0.0, 1.0, math.nan])
def test_a_rate_that_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Rates(0.8, rate)


def test_a_synthetic_evaluator_is_done_with_every_batch_when_it_says() -> None:
    cohort = cohort_of([1.0] * 40, batches=4)
    said = synthetic_predictions(cohort, Rates(0.8, 0.2), 50.0, np.random.default_rng(0))
    assert [said.at_s[cohort.members(b)].max() for b in range(4)] == [50.0] * 4


def test_the_evaluator_needs_its_fixed_time_and_its_share_of_the_candidates() -> None:
    assert EvaluatorCost(fixed_s=30.0, candidate_s=0.5).seconds(1000, 8) == 30 + 125 * 0.5


def test_cancelled_checks_are_filled_in_and_stay_out_of_agreement() -> None:
    cohort = cohort_of([1.0, 2.0, 3.0, math.inf])
    cut = replace(cohort, known=np.array([True, True, True, False]))
    full = cut.without_gaps(np.random.default_rng(0))
    assert full.seconds[3] in (1.0, 2.0, 3.0)
    assert not full.labelled[3]
    with pytest.raises(CohortError, match="no Lean check of it ran to its end"):
        replace(cut, known=np.zeros(4, dtype=bool)).without_gaps(np.random.default_rng(0))


def test_a_sample_keeps_groups_together_and_shares_no_check() -> None:
    cohort = cohort_of([float(i) for i in range(1, 21)], batches=2)
    other = cohort.sample(16, 3, np.random.default_rng(2))
    assert (len(other), other.batches, len(set(other.check.tolist()))) == (48, 3, 48)
    assert all(len(other.members(b)) == 16 for b in range(3))
    pairs = other.seconds.reshape(-1, 2)
    assert (pairs[:, 1] == pairs[:, 0] + 1).all(), "both rollouts of a prompt come together"


def test_batches_on_one_pool_wait_for_each_other() -> None:
    cohort = cohort_of([4.0] * 4, batches=2)
    options = Options(workers=1)
    assert list(replay(cohort, options, None).scoring_s) == [8.0, 8.0]
    assert list(replay(cohort, options, None, np.array([0.0, 2.0])).scoring_s) == [8.0, 14.0]


def test_check_times_are_foretold_from_earlier_batches_alone() -> None:
    rng = np.random.default_rng(0)
    seconds = np.exp(rng.normal(size=400))
    features = np.zeros((400, SIZE))
    features[:, 3] = np.log(seconds)
    batch = np.repeat([0, 1], 200)
    foretold = foretell(features, np.full(400, -1), seconds, batch)
    assert set(foretold[:200]) == {1.0}
    assert np.corrcoef(np.log(foretold[200:]), np.log(seconds[200:]))[0, 1] > 0.95
    assert list(foretell(features, np.full(400, -1), np.full(400, np.inf), batch)) == [1.0] * 400


def test_shortest_brings_more_verdicts_by_the_cutoff_than_the_order_of_the_batch() -> None:
    cohort = cohort_of([9.0, 8.0, 1.0, 1.0, 1.0])
    foretold_s = np.array([9.0, 8.0, 1.0, 1.0, 1.0])
    decided = {}
    for policy in (SchedulingPolicy.FIFO, SchedulingPolicy.SHORTEST):
        came = replay(cohort, Options(workers=1, cutoff_s=9.0, policy=policy), None, foretold_s=foretold_s)
        decided[policy] = [d.source is Source.LEAN for d in came.decisions]
    assert decided[SchedulingPolicy.FIFO] == [True, False, False, False, False]
    assert decided[SchedulingPolicy.SHORTEST] == [False, False, True, True, True]
