"""Equation 8 of learning-lean-feedback replayed on a cohort: another cutoff, pool, limit, policy or evaluator.

The pool is simulated (`pool`), its order is the gateway's (`ordering`), and every candidate goes through the gateway's
own `services.rewards.merge.merge`. The appendix "Hybrid replay and timing" of the paper is the case of one cutoff at
the evaluator's end; equation 9 gives the step time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reward_gateway.scheduling.policies import SchedulingPolicy
from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, CohortError, Flags, Indices, Numbers, Predictions
from reward_gateway.studies.ordering import REARRANGE_S, Scheduled, foretell
from reward_gateway.studies.pool import PoolBatch, run_pool
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import RewardMap
from services.rewards.merge import Decision, EvaluatorAnswer, Evidence, LeanAnswer, merge

VERDICTS = {YES: Verdict.VALID, NO: Verdict.INVALID, OPEN: Verdict.UNKNOWN}

_OK = {
    YES: LeanOutcome(status=LeanStatus.OK, verdict=Verdict.VALID, reason=Reason.OK),
    NO: LeanOutcome(status=LeanStatus.OK, verdict=Verdict.INVALID, reason=Reason.COMPILE_ERROR),
    OPEN: LeanOutcome(status=LeanStatus.SKIPPED, reason=Reason.STATEMENT_INVALID),
}
_TIMEOUT = LeanOutcome(status=LeanStatus.TIMEOUT, reason=Reason.LEAN_TIMEOUT)
_CRASHED = LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE)
_PREDICTED = {YES: Reason.OK, NO: Reason.GATE_REJECTED, OPEN: Reason.INFRASTRUCTURE}
_REWARDS = RewardMap()


@dataclass(frozen=True, slots=True)
class Options:
    """How the batches are scored this time.

    Attributes:
        workers: Lean checks at once.
        timeout_s: wall-clock limit of a check. Checks that the recording gave up on earlier than this still time out.
        cutoff_s: the deadline, seconds after the batch came; inf waits for all of Lean.
        at_evaluators_end: the cutoff is when the batch's last prediction is in, if that is earlier (`evaluator_done`).
            A batch without any ends when Lean or the precheck has decided it, as it does at the gateway.
        overhead_s: what a check costs a worker besides its own time: claiming, cleaning the engine, answering.
        cores: processors that the workers share; None: each worker has its own. More workers than cores make every
            check slower in proportion (as if all of them were busy all the time), and the limit is wall-clock time.
        pause_s: least time between two rearrangements of a batch's waiting checks.
    """

    workers: int
    timeout_s: float = 60.0
    cutoff_s: float = math.inf
    at_evaluators_end: bool = False
    policy: SchedulingPolicy = SchedulingPolicy.FIFO
    overhead_s: float = 0.0
    cores: float | None = None
    pause_s: float = REARRANGE_S

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"{self.workers} workers; at least one is needed")
        if not (self.timeout_s > 0 and self.cutoff_s > 0 and self.overhead_s >= 0):
            raise ValueError("the limit of a check and the cutoff are above 0 seconds, the overhead is not below")
        if self.cores is not None and self.cores <= 0:
            raise ValueError(f"{self.cores:g} cores; there are more than 0")

    def slowed(self, engines: Indices) -> Numbers:
        """How much longer a check takes than with the given numbers of engines (0: as if it were alone)."""
        if self.cores is None:
            return np.ones(len(engines))
        return max(1.0, self.workers / self.cores) / np.maximum(1.0, engines / self.cores)


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it. `decisions`: one a candidate.

    `scoring_s`, `evaluator_s`, `busy_s` (b,): from a batch to its cutoff, to its last prediction (0 without an
    evaluator), and the time that Lean workers spent on its checks.
    """

    decisions: Sequence[Decision]
    scoring_s: Numbers
    evaluator_s: Numbers
    busy_s: Numbers


def replay(
    cohort: Cohort,
    options: Options,
    predictions: Predictions | None,
    arrival_s: Numbers | None = None,
    *,
    foretold_s: Numbers | None = None,
) -> Replay:
    """Score a cohort again.

    Args:
        cohort: without gaps (`Cohort.without_gaps`).
        predictions: None is Lean alone.
        foretold_s: (n,) predicted check times; None: as the gateway's predictor learns them from batch to batch.
        arrival_s: (b,) when batches come to one shared pool; None: each batch has the pool for itself.

    Raises `CohortError` when the cutoff or the policy needs what the cohort does not hold.
    """
    evaluator_s = _evaluator_ends(cohort, predictions)
    if options.at_evaluators_end and not evaluator_s.any():
        raise CohortError(f"{cohort.name}: a cutoff at the evaluator's end needs predictions")
    cutoff_s = np.full(cohort.batches, options.cutoff_s)
    if options.at_evaluators_end:
        cutoff_s = np.minimum(cutoff_s, np.where(evaluator_s > 0, evaluator_s, np.inf))
    runs = cohort.asked & np.isinf(cohort.cached_s)
    slowed = options.slowed(cohort.engines)[cohort.batch]
    cohort = replace(cohort, seconds=cohort.seconds * slowed, dead_s=cohort.dead_s * slowed)
    held_s = np.minimum(np.minimum(cohort.seconds, cohort.dead_s), options.timeout_s) + options.overhead_s
    first = _first_of_each_check(cohort.check, runs)
    predicted_s = _predicted_s(cohort, options.policy, held_s) if foretold_s is None else foretold_s
    pool: list[PoolBatch] = []
    checks: list[Indices] = []
    for batch in range(cohort.batches):
        members = cohort.members(batch)
        mine = members[runs[members] & (first[members] == members)]
        checks.append(mine)
        pool.append(
            PoolBatch(
                held_s[mine],
                arrival_s=0.0 if arrival_s is None else float(arrival_s[batch]),
                cutoff_s=float(cutoff_s[batch]),
                ordering=_ordering(cohort, options, predictions, predicted_s, mine),
            )
        )
    ran = [run_pool([one], options.workers) for one in pool] if arrival_s is None else [run_pool(pool, options.workers)]
    ends = np.full(len(cohort), np.inf)
    for mine, end in zip(checks, (end for run in ran for end in run.ends), strict=True):
        ends[mine] = end
    at_s = np.where(runs, ends[first], cohort.cached_s)  # the check of an identical program answers all of them
    given_up = (cohort.verdict == OPEN) | (np.minimum(cohort.seconds, cohort.dead_s) >= options.timeout_s)
    given_up[cohort.rejected] = False
    last_s = np.array([_last_s(cohort, b, at_s, given_up, float(evaluator_s[b])) for b in range(cohort.batches)])
    scoring_s = np.minimum(last_s, cutoff_s)
    decisions = [
        merge(_evidence(cohort, options, i, at_s[i], predictions), float(cutoff_s[cohort.batch[i]]), _REWARDS)
        for i in range(len(cohort))
    ]
    return Replay(decisions, scoring_s, evaluator_s, np.array([busy for run in ran for busy in run.busy_s]))


def _first_of_each_check(check: Indices, runs: Flags) -> Indices:
    """(n,) the index of the candidate whose check is the one that runs, for identical programs the first of them."""
    found = np.arange(len(check))
    seen: dict[int, int] = {}
    for index in np.flatnonzero(runs):
        found[index] = seen.setdefault(int(check[index]), int(index))
    return found


def _predicted_s(cohort: Cohort, policy: SchedulingPolicy, held_s: Numbers) -> Numbers:
    if policy is SchedulingPolicy.FIFO:
        return np.ones(len(cohort))
    if cohort.features is None:
        raise CohortError(f"{cohort.name}: scheduling by `{policy.value}` needs the features of the programs")
    return foretell(cohort.features, cohort.problem, held_s, cohort.batch)


def _ordering(
    cohort: Cohort, options: Options, predictions: Predictions | None, predicted_s: Numbers, mine: Indices
) -> Scheduled:
    never = np.full(len(mine), np.inf)
    return Scheduled(
        options.policy,
        predicted_s[mine],
        cohort.group[mine],
        cohort.verdict[mine] == YES,
        np.full(len(mine), np.nan) if predictions is None else predictions.chance[mine],
        never if predictions is None else predictions.at_s[mine],
        options.pause_s,
    )


def _evaluator_ends(cohort: Cohort, predictions: Predictions | None) -> Numbers:
    ends = np.zeros(cohort.batches)
    if predictions is not None:
        for batch in range(cohort.batches):
            at_s = predictions.at_s[cohort.members(batch)]
            ends[batch] = max(at_s[np.isfinite(at_s)], default=0.0)
    return ends


def _last_s(cohort: Cohort, batch: int, at_s: Numbers, given_up: Flags, evaluator_s: float) -> float:
    """When nothing can change any more without a cutoff.

    That is when Lean has ended every check; where it gave up on some, or was not asked, the evaluator has to be there
    too.
    """
    members = cohort.members(batch)
    lean_s = float(at_s[members[cohort.asked[members]]].max(initial=0.0))
    return max(lean_s, evaluator_s if given_up[members].any() else 0.0)


def _evidence(cohort: Cohort, options: Options, i: int, at_s: float, predictions: Predictions | None) -> Evidence:
    if cohort.precheck[i] is not None:
        return Evidence(precheck=cohort.precheck[i])
    lean = None
    if math.isfinite(at_s):
        if cohort.dead_s[i] < min(cohort.seconds[i], options.timeout_s):
            outcome = _CRASHED
        elif cohort.seconds[i] < options.timeout_s or math.isfinite(cohort.cached_s[i]):
            outcome = _OK[int(cohort.verdict[i])]
        else:
            outcome = _TIMEOUT
        lean = LeanAnswer(outcome, float(at_s))
    word = None
    if predictions is not None:
        said = int(predictions.verdict[i])
        word = EvaluatorAnswer(VERDICTS[said], _PREDICTED[said], float(predictions.at_s[i]))
    status = LeanStatus.CANCELLED if cohort.asked[i] else LeanStatus.SKIPPED
    return Evidence(lean=lean, prediction=word, without_lean=status)
