"""How many Lean workers and GPUs a fleet of trainers needs: many batches on one shared pool, in virtual time.

Every trainer sends a batch each `every_s` seconds, at a phase of its own; the batches that are open take turns on the
shared pool, as in the queue, and a batch's checks are cancelled at its deadline. Some periods are measured; the batches
that overlap with them at both ends are simulated too, so that the pool is not found or left empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reward_gateway.scheduling.policies import SchedulingPolicy
from reward_gateway.studies.cohort import Cohort, CohortError, Numbers, Predictions
from reward_gateway.studies.evaluators import EvaluatorCost, Rates, synthetic_predictions
from reward_gateway.studies.replay import Options, Replay, replay
from reward_gateway.studies.report import make_report
from services.contracts.outcomes import Source

_SIMULATED, _TRAINERS, _BATCHES, _BATCH = 8_192, 256, 8, 32
"""Candidates in one simulation: as many periods as they allow, and at least `_BATCHES` batches, without which nobody
knew how much one differs from the next. Beyond that batches are simulated in part, on that part of the pool, but not
smaller than `_BATCH`. Above `_TRAINERS` only so many trainers are: with fewer, batches would meet less evenly than they
do.
"""
_FINEST = 0.01
"""Worker counts are found to 1%, about what the share of one simulation is worth."""


class Unreachable(Exception):
    """No number of workers reaches the goal; the message says what is reached at best."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the trainers ask. Times in seconds. Raises `ValueError` for what makes no sense.

    `rates`: of a synthetic evaluator; None takes the cohort's predictions, and Lean alone where it has none.
    `cost`: what an evaluator takes on GPUs. `gpus`: those that work on one batch; 0: as many as the deadline needs.
    `overhead_s`: as in `Options`. `core_price`, `gpu_price`: of an hour of a Lean worker's core and of a GPU.
    """

    batch: int
    every_s: float
    trainers: int
    deadline_s: float
    timeout_s: float
    cost: EvaluatorCost
    rates: Rates | None = None
    policy: SchedulingPolicy = SchedulingPolicy.FIFO
    gpus: int = 0
    overhead_s: float = 0.0
    core_price: float = 0.04
    gpu_price: float = 2.5

    def __post_init__(self) -> None:
        if min(self.batch, self.trainers) < 1 or min(self.deadline_s, self.timeout_s) <= 0:
            raise ValueError("batch and trainers are at least 1; the deadline and the limit of a check are above 0")
        if self.deadline_s > self.every_s:
            raise ValueError(f"a deadline of {self.deadline_s:g} s, and a batch every {self.every_s:g} s already")


@dataclass(frozen=True, slots=True)
class Point:
    """One fleet, on average over the batches that were simulated.

    `lean_share_error`: the standard error of that average, from how the batches differ. `busy`: the part of the
    workers' time that they check. `cost_hour`: of all workers and of the GPUs that the worst moment needs, an hour.
    """

    workers: int
    deadline_s: float
    lean_share: float
    lean_share_error: float
    evaluator_share: float
    unknown_share: float
    wrong_share: float | None
    agreement: float | None
    busy: float
    cost_hour: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Gpus:
    """`batch`: GPUs on one batch, so that its predictions are ready after `ready_s`. `fleet`: so many batches overlap
    at the worst moment that this many are busy; `load` is the mean.
    """

    batch: int
    ready_s: float
    fleet: int
    load: float


class Planner:
    """One demand on one cohort. Its simulations share their random draws, so that fleets compare on equal terms."""

    def __init__(self, cohort: Cohort, demand: Demand, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.demand = demand
        trainers = min(demand.trainers, _TRAINERS)
        size = min(demand.batch, max(_BATCH, _SIMULATED // max(trainers, _BATCHES)))
        self._periods = max(1, math.ceil(_BATCHES / trainers), _SIMULATED // (trainers * size))
        self._measured = trainers * self._periods
        self._part = trainers * size / (demand.trainers * demand.batch)
        self._fleet_s = _arrivals(demand.trainers, 1, demand, rng)
        self._arrival_s = _arrivals(trainers, self._periods, demand, rng)
        self._cohort = _for_lean(cohort).without_gaps(rng).sample(size, len(self._arrival_s), rng)
        self.predicts = demand.rates is not None or cohort.predictions is not None
        self.gpus = self._gpus() if self.predicts else None
        self._cohort = replace(self._cohort, predictions=self._predictions(rng))

    def simulate(self, workers: int, deadline_s: float | None = None) -> Point:
        """The fleet with so many workers; `deadline_s` instead of the demand's, and not later."""
        demand = self.demand
        options = Options(
            workers=max(1, round(workers * self._part)),
            timeout_s=demand.timeout_s,
            cutoff_s=demand.deadline_s if deadline_s is None else deadline_s,
            policy=demand.policy,
            overhead_s=demand.overhead_s,
        )
        came = replay(self._cohort, options, self._cohort.predictions, self._arrival_s)
        head = self._cohort.head(self._measured)
        first = Replay(
            came.decisions[: len(head)],
            came.scoring_s[: self._measured],
            came.evaluator_s[: self._measured],
            came.busy_s[: self._measured],
        )
        report = make_report(head, options, head.predictions, first)
        gpus = 0 if self.gpus is None else self.gpus.fleet
        decided = [decision.source is Source.LEAN for decision in first.decisions]
        by_batch = np.reshape(decided, (self._measured, -1)).mean(axis=1)
        return Point(
            workers=workers,
            deadline_s=options.cutoff_s,
            lean_share=report.lean_share,
            lean_share_error=float(by_batch.std(ddof=1)) / math.sqrt(self._measured),
            evaluator_share=report.evaluator_share,
            unknown_share=report.unknown_share,
            wrong_share=report.wrong_share,
            agreement=report.agreement,
            busy=min(1.0, float(first.busy_s.sum()) / (options.workers * demand.every_s * self._periods)),
            cost_hour=workers * demand.core_price + gpus * demand.gpu_price,
        )

    def fewest(self, *, lean_share: float | None = None, wrong_share: float | None = None) -> Point:
        """The smallest fleet that reaches the share of Lean and stays below that of wrong rewards.

        A reward that is withheld is none of Lean's: it counts against `wrong_share` as a wrong one does.

        Raises:
            Unreachable: even a worker for every check does not, within the limit and the deadline.
            ValueError: wrong rewards are asked for, and the cohort has no labelled candidate.
        """

        def reached(point: Point) -> bool:
            enough = lean_share is None or point.lean_share >= lean_share
            if wrong_share is None:
                return enough
            if point.agreement is None:
                raise ValueError("the cohort has no candidate with Lean's full verdict: wrong rewards cannot be told")
            return enough and 1 - point.agreement <= wrong_share

        low, high = 0, self.most_workers
        best = self.simulate(high)
        if not reached(best):
            wrong = "" if best.agreement is None else f" and {1 - best.agreement:.2%} wrong or withheld rewards"
            raise Unreachable(
                f"with a worker for every check {best.lean_share:.1%} of Lean{wrong} are reached at best: "
                f"a later deadline or another limit of a check would be needed"
            )
        while high - low > max(1, _FINEST * high):
            middle = (low + high) // 2
            point = self.simulate(middle)
            low, high, best = (low, middle, point) if reached(point) else (middle, high, best)
        return best

    @property
    def most_workers(self) -> int:
        """A worker for every check that can be open at once."""
        return _overlap(self._fleet_s, self.demand.deadline_s) * self.demand.batch

    def over_workers(self, workers: Sequence[int]) -> list[Point]:
        return [self.simulate(count) for count in workers]

    def over_deadlines(self, workers: int, deadlines: Sequence[float]) -> list[Point]:
        return [self.simulate(workers, deadline_s) for deadline_s in deadlines]

    def _gpus(self) -> Gpus:
        """Raises `Unreachable` when the fixed part of the evaluator's time is longer than the deadline."""
        demand, cost = self.demand, self.demand.cost
        room = demand.deadline_s - cost.fixed_s
        each = int(min(room / cost.candidate_s, demand.batch)) if cost.candidate_s else demand.batch
        gpus = demand.gpus
        if not gpus and (room < 0 or each < 1):
            raise Unreachable(
                f"the evaluator needs {cost.fixed_s + cost.candidate_s:.1f} s even for one program, "
                f"the deadline is {demand.deadline_s:g} s"
            )
        gpus = gpus or math.ceil(demand.batch / each)
        ready_s = cost.seconds(demand.batch, gpus)
        held_s = min(ready_s, demand.deadline_s)
        load = gpus * demand.trainers * held_s / demand.every_s
        return Gpus(gpus, ready_s, gpus * _overlap(self._fleet_s, held_s), load)

    def _predictions(self, rng: np.random.Generator) -> Predictions | None:
        if self.gpus is None:
            return None
        ready_s = self.gpus.ready_s
        if self.demand.rates is None:
            said = self._cohort.predictions
            return None if said is None else replace(said, at_s=np.where(np.isfinite(said.at_s), ready_s, np.inf))
        return synthetic_predictions(self._cohort, self.demand.rates, ready_s, rng)


def _for_lean(cohort: Cohort) -> Cohort:
    """The candidates that Lean or the precheck can decide. Raises `CohortError` without any."""
    kept = np.flatnonzero(cohort.asked | cohort.rejected)
    if not len(kept):
        raise CohortError(f"{cohort.name}: Lean was never asked")
    return cohort.take(kept)


def _arrivals(trainers: int, periods: int, demand: Demand, rng: np.random.Generator) -> Numbers:
    """When batches come: one of each trainer within each period, then those around them.

    After them, all that can overlap with them; before them, those of two deadlines, so that the ones that overlap with
    them had to share the pool too.
    """
    phases = np.sort(rng.uniform(0, demand.every_s, trainers))
    within = [phases + period * demand.every_s for period in range(periods)]
    before = phases[phases > demand.every_s - 2 * demand.deadline_s] - demand.every_s
    after = phases[phases < demand.deadline_s] + periods * demand.every_s
    return np.concatenate([*within, before, after])


def _overlap(arrival_s: Numbers, held_s: float) -> int:
    """How many of the intervals that begin at `arrival_s` and last `held_s` overlap at the worst moment."""
    begins = np.sort(arrival_s)
    open_at = np.arange(1, len(begins) + 1) - np.searchsorted(begins + held_s, begins, side="right")
    return int(open_at.max(initial=0))
