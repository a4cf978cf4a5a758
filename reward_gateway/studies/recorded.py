"""From recorded rows to a cohort."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from reward_gateway.scheduling.check_time import SIZE
from reward_gateway.scheduling.order import valid_probability
from reward_gateway.studies.cohort import NO, OPEN, YES, Cohort, CohortError, Indices, Numbers, Predictions
from reward_gateway.studies.files import Row, read_rows
from reward_gateway.studies.pool import PoolBatch, run_pool
from services.contracts.evaluator import Prediction
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import Mode

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
        asked=np.array([_asked(row) for row in rows]),
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
        timeout_s=np.array([float(rows[start]["timeout_s"]) for start in starts]),
        ended_s=_times([rows[start]["cutoff_s"] for start in starts]),
    )


def _asked(row: Row) -> bool:
    return row["precheck"] is None and row["check"] is not None and row["mode"] != Mode.EVALUATOR.value


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


def timeout_s(cohort: Cohort) -> float:
    """The limit of a check in the recording. Raises `CohortError` where its batches had different ones."""
    asking = np.unique(cohort.batch[cohort.asked]) if cohort.asked.any() else np.arange(cohort.batches)
    found = np.unique(cohort.timeout_s[asking])
    if len(found) > 1:
        limits = ", ".join(f"{limit:g}" for limit in found)
        raise CohortError(f"{cohort.name} was recorded with limits of {limits} s: choose one with --timeout")
    return float(found[0])


def overhead_s(cohort: Cohort) -> float | None:
    """What a check cost a worker besides its own time in the recording, seconds; None where that cannot be told.

    Batches that were open at one time shared the engines, and are simulated together. For each such stretch whose
    checks all ran to their end and outnumber the engines, the overhead with which the batches of the simulated pool
    end, on average, when the recorded ones did; the median of the stretches.
    """
    found = [_overhead_s(stretch) for stretch in _stretches(cohort)]
    known = [value for value in found if value is not None]
    return median(known) if known else None


@dataclass(frozen=True, slots=True)
class _Worked:
    """What one batch had the engines do. `seconds` (n,), `last_s`: when the last check was answered, since receipt;
    inf where some check did not run to its end.
    """

    seconds: Numbers
    arrival_s: float
    last_s: float
    engines: int


def _stretches(cohort: Cohort) -> Iterator[list[_Worked]]:
    """Batches that asked Lean, in runs that overlap with no other."""
    stretch: list[_Worked] = []
    until = -math.inf
    for batch in np.argsort(cohort.arrival_s, kind="stable"):
        checks = _checks(cohort, int(batch))
        if not len(checks):
            continue
        whole = cohort.known[checks].all()
        worked = _Worked(
            seconds=np.minimum(cohort.seconds[checks], cohort.limit_s[checks]),
            arrival_s=float(cohort.arrival_s[batch]),
            last_s=float(cohort.answered_s[checks].max()) if whole else math.inf,
            engines=int(cohort.engines[batch]),
        )
        if stretch and worked.arrival_s >= until:
            yield stretch
            stretch = []
        stretch.append(worked)
        until = max(until, worked.arrival_s + min(worked.last_s, float(cohort.ended_s[batch])))
    if stretch:
        yield stretch


def _checks(cohort: Cohort, batch: int) -> Indices:
    """One candidate for each check that the batch had the engines run."""
    members = cohort.members(batch)
    members = members[cohort.asked[members] & np.isinf(cohort.cached_s[members])]
    _, first = np.unique(cohort.check[members], return_index=True)
    return members[np.sort(first)]


def _overhead_s(stretch: Sequence[_Worked]) -> float | None:
    last_s = fmean(worked.last_s for worked in stretch)
    workers = stretch[0].engines
    alike = all(worked.engines == workers for worked in stretch)
    if not workers or not alike or sum(len(w.seconds) for w in stretch) < 2 * workers or math.isinf(last_s):
        return None
    low, high = 0.0, last_s
    for _ in range(24):
        middle = (low + high) / 2
        ran = run_pool([PoolBatch(worked.seconds + middle, worked.arrival_s) for worked in stretch], workers)
        low, high = (low, middle) if fmean(float(ends.max()) for ends in ran.ends) > last_s else (middle, high)
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
