"""From recorded rows to a cohort."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from reward_gateway.scheduling.check_time import SIZE
from reward_gateway.scheduling.order import valid_probability
from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, CohortError, Indices, Numbers, Predictions
from reward_gateway.studies.files import Row, read_rows
from reward_gateway.studies.pool import PoolBatch, run_pool
from services.contracts.evaluator import Prediction
from services.contracts.outcomes import LeanStatus, Reason, Verdict

_NUMBERS = {Verdict.VALID.value: YES, Verdict.INVALID.value: NO, Verdict.UNKNOWN.value: OPEN, None: OPEN}


def read_cohort(path: Path) -> Cohort:
    """A recorded cohort of a file or folder. Raises `CohortError`."""
    return cohort_of(read_rows(path), str(path))


def cohort_of(rows: Sequence[Row], name: str) -> Cohort:
    """Rows in the order of their batches as a cohort. Raises `CohortError` for a value that has no meaning here."""
    if not rows:
        raise CohortError(f"{name} holds no candidate")
    try:
        return _cohort(rows, name)
    except (KeyError, TypeError, ValueError) as error:
        raise CohortError(f"{name} holds a value that cannot be used: {error}") from None


def _cohort(rows: Sequence[Row], name: str) -> Cohort:
    batch = _numbered([(row["batch"], row["received_at"]) for row in rows])
    starts = np.searchsorted(batch, np.arange(batch[-1] + 1))
    origin = rows[0]["received_at"]
    lean = [_lean(row) for row in rows]
    check = [(number, row["check"] or index) for index, (number, row) in enumerate(zip(batch, rows, strict=True))]
    features = [row["features"] for row in rows]
    whole = any(f is not None for f in features) and all(f is None or len(f) == SIZE for f in features)
    return Cohort(
        name=name,
        batch=batch,
        check=_numbered(check),
        group=_named([row["group"] for row in rows]),
        problem=_named([row["problem"] for row in rows]),
        precheck=[None if row["precheck"] is None else Reason(row["precheck"]) for row in rows],
        asked=np.array([row["precheck"] is None and row["check"] is not None for row in rows]),
        seconds=np.array([one["seconds"] for one in lean]),
        verdict=np.array([_NUMBERS[row["lean_verdict"]] for row in rows]),
        limit_s=np.array([one["limit_s"] for one in lean]),
        dead_s=np.array([one["dead_s"] for one in lean]),
        known=np.array([one["known"] for one in lean], dtype=bool),
        cached_s=_times([row["lean_at_s"] if row["cached"] else None for row in rows]),
        answered_s=_times([row["lean_at_s"] for row in rows]),
        features=np.array([np.zeros(SIZE) if f is None else f for f in features]) if whole else None,
        predictions=_predictions(rows),
        arrival_s=np.array([(rows[start]["received_at"] - origin).total_seconds() for start in starts]),
        engines=np.array([rows[start]["engines"] for start in starts], dtype=np.int64),
    )


def _lean(row: Row) -> Mapping[str, float]:
    """How long the check takes, as far as the recording knows."""
    status, spent = LeanStatus(row["lean_status"]), row["check_s"]
    limit_s = float(row["timeout_s"])
    ended = {"seconds": math.inf, "dead_s": math.inf, "limit_s": limit_s, "known": True}
    if status is LeanStatus.OK or row["lean_reason"] == Reason.STATEMENT_INVALID.value:
        seconds = float(spent or 0.0)
        return {**ended, "seconds": seconds, "limit_s": max(limit_s, math.nextafter(seconds, math.inf))}
    if status is LeanStatus.CRASHED:
        return {**ended, "dead_s": float(spent or row["lean_at_s"] or 0.0)}
    return {**ended, "known": status is LeanStatus.TIMEOUT}


def _predictions(rows: Sequence[Row]) -> Predictions | None:
    if all(row["predicted"] is None for row in rows):
        return None
    return Predictions(
        np.array([OPEN if row["misstated"] else _NUMBERS[row["predicted"]] for row in rows]),
        _times([row["predicted_at_s"] for row in rows]),
        np.array([_chance(row) for row in rows]),
    )


def _chance(row: Row) -> float:
    if row["predicted"] is None:
        return math.nan
    word = Prediction(
        id="",
        verdict=Verdict(row["predicted"]),
        reason=Reason(row["predicted_reason"]),
        gate=row["gate"],
        feedback=None if row["feedback"] is None else Verdict(row["feedback"]),
    )
    chance = valid_probability(word)
    return math.nan if chance is None else chance


def _times(values: Sequence[float | None]) -> Numbers:
    return np.array([math.inf if value is None else float(value) for value in values])


def _numbered(names: Sequence[Hashable]) -> Indices:
    """The names as numbers, in the order in which they first come."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _named(names: Sequence[str | None]) -> Indices:
    known: dict[str, int] = {}
    return np.array([-1 if n is None else known.setdefault(n, len(known)) for n in names], dtype=np.int64)


def overhead_s(cohort: Cohort) -> float:
    """What a check cost a worker besides its own time in the recording, seconds: 0 where that cannot be told.

    For each batch whose checks all ran to their end and outnumber the engines, the overhead with which the simulated
    pool ends when the recorded one did; the median of the batches.
    """
    found = [_overhead_s(cohort, batch) for batch in range(cohort.batches)]
    known = [value for value in found if value is not None]
    return median(known) if known else 0.0


def _overhead_s(cohort: Cohort, batch: int) -> float | None:
    members = cohort.members(batch)
    members = members[cohort.asked[members] & np.isinf(cohort.cached_s[members])]
    _, first = np.unique(cohort.check[members], return_index=True)
    members, workers = members[np.sort(first)], int(cohort.engines[batch])
    seconds = np.minimum(cohort.seconds[members], cohort.limit_s[members])
    last = float(cohort.answered_s[members].max(initial=0.0))
    if not workers or len(members) < 2 * workers or not cohort.known[members].all() or math.isinf(last):
        return None
    low, high = 0.0, workers * last / len(members)
    for _ in range(20):
        middle = (low + high) / 2
        end = float(run_pool([PoolBatch(seconds + middle)], workers).ends[0].max())
        low, high = (low, middle) if end > last else (middle, high)
    return low


def mix(cohort: Cohort) -> dict[str, Any]:
    """What a cohort is made of, for the head of a report."""
    asked = cohort.asked
    return {
        "name": cohort.name,
        "batches": cohort.batches,
        "candidates": len(cohort),
        "checks": len(np.unique(cohort.check[asked])) if asked.any() else 0,
        "labelled": int(cohort.labelled.sum()),
        "cancelled": int((asked & ~cohort.known).sum()),
        "predicted": 0 if cohort.predictions is None else int((cohort.predictions.verdict != OPEN).sum()),
    }
