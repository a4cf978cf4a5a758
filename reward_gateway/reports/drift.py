"""How an evaluator does as training goes on (learning-lean-feedback, Table 11), from recordings and exported labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reward_gateway.quality.records import LabelledProgram
from reward_gateway.quality.wilson import wilson
from services.contracts.evaluator import Interval
from services.contracts.outcomes import Verdict

_DECIDED = (Verdict.VALID.value, Verdict.INVALID.value)


@dataclass(frozen=True, slots=True)
class Said:
    """One candidate: whether the evaluator and Lean accept it, None where they have not said."""

    predicted: bool | None
    valid: bool | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a run. `name` says which steps; `measured` candidates have both verdicts, and the rates are on them.

    `lean_share` is None where the source has only programs that Lean decided.
    """

    name: str
    candidates: int
    lean_share: float | None
    measured: int
    accuracy: Interval | None
    false_positive_rate: Interval | None


def by_steps(rows: Sequence[Mapping[str, Any]], stretches: int) -> list[Stretch]:
    """A recording in at most so many stretches of batches, each batch being one step of training."""
    batches = [list(batch) for _, batch in groupby(rows, key=lambda row: (row["received_at"], row["batch"]))]
    found = []
    for first, last in _parts(len(batches), stretches):
        said = [_recorded(row) for batch in batches[first:last] for row in batch]
        share = sum(one.valid is not None for one in said) / len(said)
        name = f"{first + 1}" if last == first + 1 else f"{first + 1}-{last}"
        found.append(measure(name, said, share))
    return found


def by_time(labels: Sequence[LabelledProgram], stretches: int) -> tuple[list[Stretch], bool]:
    """Exported labels in stretches of as many programs, the oldest first; whether they are the audit's uniform draw.

    Where some were audited the others are left out: what Lean finishes before a cutoff is no fair sample.
    """
    audited = [label for label in labels if label.audited]
    ordered = sorted(audited or labels, key=lambda label: label.at)
    found = []
    for first, last in _parts(len(ordered), stretches):
        said = [
            Said(label.predicted is Verdict.VALID, label.verdict is Verdict.VALID)
            for label in ordered[first:last]
            if Verdict.UNKNOWN not in (label.predicted, label.verdict)
        ]
        found.append(measure(f"{first + 1}-{last}", said, None))
    return found, bool(audited)


def measure(name: str, said: Sequence[Said], lean_share: float | None) -> Stretch:
    both = [(one.predicted, one.valid) for one in said if one.predicted is not None and one.valid is not None]
    invalid = [predicted for predicted, valid in both if not valid]
    return Stretch(
        name=name,
        candidates=len(said),
        lean_share=lean_share,
        measured=len(both),
        accuracy=wilson(sum(predicted == valid for predicted, valid in both), len(both)),
        false_positive_rate=wilson(sum(map(bool, invalid)), len(invalid)),
    )


def _parts(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Ranges (from, to) of nearly equal length that cover 0 to `count`."""
    parts = min(count, most)
    for number in range(parts):
        yield number * count // parts, (number + 1) * count // parts


def _recorded(row: Mapping[str, Any]) -> Said:
    # A prediction about a program that does not state its theorem as it is decides nothing, and is not measured.
    return Said(None if row["misstated"] else _accepts(row["predicted"]), _accepts(row["lean_verdict"]))


def _accepts(verdict: str | None) -> bool | None:
    return verdict == Verdict.VALID.value if verdict in _DECIDED else None
