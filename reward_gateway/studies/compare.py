"""The paper's numbers beside those of a replay, relation by relation, under a named mechanism.

What cannot hold together is left standing, with the reason (`WHY`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from reward_gateway.studies import paper
from reward_gateway.studies.cohort import NO, YES, Cohort
from reward_gateway.studies.evaluators import synthetic_predictions
from reward_gateway.studies.replay import Options, replay
from reward_gateway.studies.report import REST_S, make_report
from reward_gateway.studies.synthetic import FIXED_POOL, CheckTimes, synthetic_cohort

TOLERANCE = 0.05
WHY = (
    "A pool whose workers never idle while checks wait cannot give 43% of the verdicts after 90 s and need 420 s for "
    "all: in no special order 43% of the verdicts are about 43% of the work, so that all of it takes about 210 s and a "
    "tail of at most 60 s. Workers that do not slow each other down cannot stop to gain at 64 of them."
)
SHARED_CORES = 36.0
"""Of the machine in Appendix A: 72 virtual processors, two to a core."""


class Mechanism(str, Enum):
    """How a pool turns check times into batch times.

    `fixed`: a fixed number of workers, each with a core of its own, takes the next waiting check (list scheduling).
    `shared`: the same, on cores that the workers share. The 72 virtual processors of the paper's Appendix A are 36
    cores; that these limit its throughput is our reading, not the paper's.
    """

    FIXED = "fixed"
    SHARED = "shared"

    @property
    def cores(self) -> float | None:
        return None if self is Mechanism.FIXED else SHARED_CORES


@dataclass(frozen=True, slots=True)
class Compared:
    """A published number and the replay's. `holds`: they differ by at most `TOLERANCE` of the published one."""

    relation: paper.Relation
    replayed: float

    @property
    def deviation(self) -> float:
        return self.replayed / self.relation.value - 1

    @property
    def holds(self) -> bool:
        return abs(self.deviation) <= TOLERANCE


def paper_cohort(rng: np.random.Generator, batches: int = paper.BATCHES, times: CheckTimes = FIXED_POOL) -> Cohort:
    """The synthetic cohort with the cascade's predictions."""
    cohort = synthetic_cohort(times, rng, batches=batches)
    said = synthetic_predictions(
        cohort, paper.CASCADE, paper.EVALUATOR_S, rng, late_true_positive=paper.LATE_TRUE_POSITIVE
    )
    return replace(cohort, predictions=said)


def compare(cohort: Cohort, mechanism: Mechanism) -> list[Compared]:
    """Replay what the paper measured; in the order of `paper.RELATIONS`."""
    found = {**_counted(cohort), **_timed(cohort, mechanism)}
    return [Compared(relation, float(found[relation.name])) for relation in paper.RELATIONS]


def as_json(rows: Sequence[Compared], mechanism: Mechanism) -> dict[str, Any]:
    return {
        "mechanism": mechanism.value,
        "tolerance": TOLERANCE,
        "relations": [
            {
                "name": row.relation.name,
                "text": row.relation.text,
                "where": row.relation.where,
                "paper": row.relation.value,
                "replay": row.replayed,
                "deviation": row.deviation,
                "holds": row.holds,
            }
            for row in rows
        ],
    }


def _counted(cohort: Cohort) -> Mapping[str, float]:
    """What is counted in the cohort itself, before any pool."""
    if cohort.predictions is None:
        raise ValueError("the cohort has no predictions")
    late = cohort.asked & (cohort.seconds >= paper.TIMEOUT_S)
    resolved = late & (cohort.seconds < math.inf)
    accepted, labelled = cohort.predictions.verdict == YES, cohort.labelled
    valid, invalid = labelled & (cohort.verdict == YES), labelled & (cohort.verdict == NO)
    proved = resolved & (cohort.verdict == YES)
    right = accepted == (cohort.verdict == YES)
    return {
        "timeouts": late.sum() / cohort.asked.sum(),
        "late_valid": proved.sum() / resolved.sum(),
        "true_positive": accepted[valid].mean(),
        "false_positive": accepted[invalid].mean(),
        "accuracy": right[labelled].mean(),
        "late_recall": accepted[proved].mean(),
    }


def _timed(cohort: Cohort, mechanism: Mechanism) -> Mapping[str, float]:
    """What a pool makes of it."""
    full = Options(workers=paper.WORKERS, timeout_s=paper.TIMEOUT_S, cores=mechanism.cores)

    def lean_alone(options: Options) -> tuple[float, float]:
        """Seconds a batch, and verdicts a second."""
        report = make_report(cohort, options, None, replay(cohort, options, None))
        return report.scoring_s, report.lean_share * paper.CANDIDATES / report.scoring_s

    hybrid = replace(full, cutoff_s=paper.EVALUATOR_S, at_evaluators_end=True)
    report = make_report(cohort, hybrid, cohort.predictions, replay(cohort, hybrid, cohort.predictions))
    all_s, rate = lean_alone(full)
    return {
        "lean_share": report.lean_share,
        "agreement": report.agreement or 0.0,
        "scoring_short": lean_alone(replace(full, timeout_s=paper.SHORT_TIMEOUT_S))[0],
        "scoring": all_s,
        "scaling_64": rate / lean_alone(replace(full, workers=32))[1],
        "scaling_96": lean_alone(replace(full, workers=96))[1] / rate,
        "step": REST_S + all_s,
        "step_hybrid": report.step_s,
        "saving": 1 - report.step_s / (REST_S + all_s),
    }
