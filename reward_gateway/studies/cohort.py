"""A cohort: batches of candidates with what Lean and an evaluator said of them, and how long each took.

Flat arrays, one entry a candidate, so that a replay of tens of thousands is quick. Times are in seconds; those of a
batch count from its receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from services.contracts.outcomes import Reason

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

NO, YES, OPEN = 0, 1, -1
"""A verdict in an array: invalid, valid, unknown."""


class CohortError(Exception):
    """A cohort cannot be read or does not hold what a study needs; the message says which."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """An evaluator's word on every candidate.

    `verdict` (n,): `YES`, `NO`, `OPEN` where it said nothing. `at_s` (n,): when, inf for never. `chance` (n,): the
    probability of valid that scheduling goes by, NaN where there is none.
    """

    verdict: Indices
    at_s: Numbers
    chance: Numbers

    def take(self, index: Indices) -> Predictions:
        return Predictions(self.verdict[index], self.at_s[index], self.chance[index])


@dataclass(frozen=True, slots=True)
class Cohort:
    """Candidates in the order of their batches. All arrays are (n,) but those of batches, (b,).

    `batch`: which batch, 0 to b - 1, ascending. `check`: which Lean check; identical programs of a batch share one.
    `group`: the prompt; -1 for none. `problem`: what check times have in common across batches; -1 for none.
    `precheck`: why the precheck rejected it, None where it passed. `asked`: it was sent to Lean.
    `seconds`: what Lean needs to answer, inf where even the longest budget that was tried did not suffice.
    `verdict`: that answer. `limit_s`: the per-check limit of the recording; answers that took as long or longer come
    from a later audit, and are no reference of a replay. `dead_s`: after this the check killed its workers; inf.
    `known`: the check ran to an end of its own; false where the cutoff of the recording cancelled it.
    `cached_s`: when the verdict cache answered; inf where it did not.
    `features` (n, `check_time.SIZE`) or None: what the check-time predictor sees of the program.
    `answered_s`: when Lean's answer came in the recording; inf where it did not.
    `arrival_s`, `engines`, `timeout_s`, `ended_s` of each batch: receipt since the first batch's, the warm engines then
    (0: not known), the limit of a check, and when it ended since its receipt (inf: not known).
    """

    name: str
    batch: Indices
    check: Indices
    group: Indices
    problem: Indices
    precheck: Sequence[Reason | None]
    asked: Flags
    seconds: Numbers
    verdict: Indices
    limit_s: Numbers
    dead_s: Numbers
    known: Flags
    cached_s: Numbers
    answered_s: Numbers
    features: Numbers | None
    predictions: Predictions | None
    arrival_s: Numbers
    engines: Indices
    timeout_s: Numbers
    ended_s: Numbers

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def batches(self) -> int:
        return len(self.arrival_s)

    @property
    def rejected(self) -> Flags:
        """(n,) the precheck decided."""
        return np.array([reason is not None for reason in self.precheck], dtype=bool)

    @property
    def labelled(self) -> Flags:
        """(n,) Lean gave a verdict within the limit of the recording: what agreement is measured on."""
        return np.asarray(self.known & (self.verdict != OPEN) & (self.seconds < self.limit_s))

    def members(self, batch: int) -> Indices:
        """Indices of one batch's candidates."""
        low, high = np.searchsorted(self.batch, [batch, batch + 1])
        return np.arange(low, high)

    def take(self, index: Indices) -> Cohort:
        """The given candidates, in the order of their batches, which stay as many as they are."""
        return replace(
            self,
            **{name: getattr(self, name)[index] for name in _OF_CANDIDATES},
            precheck=[self.precheck[i] for i in index],
            features=None if self.features is None else self.features[index],
            predictions=None if self.predictions is None else self.predictions.take(index),
        )

    def head(self, batches: int) -> Cohort:
        """The first batches alone."""
        taken = self.take(np.arange(np.searchsorted(self.batch, batches)))
        return replace(taken, **{name: getattr(self, name)[:batches] for name in _OF_BATCHES})

    def without_gaps(self, rng: np.random.Generator) -> Cohort:
        """Every cancelled check given the time and the verdict of one that ended, drawn at random.

        Stays out of `labelled`: only its use of a worker, and that Lean decides it, is filled in. Checks that ran to
        their end are on average shorter than those that a cutoff cancelled, so a cohort for planning is best recorded
        with cutoff policy `all`. Raises `CohortError` when no check ended at all.
        """
        gaps = np.flatnonzero(self.asked & ~self.known)
        if not len(gaps):
            return self
        whole = np.flatnonzero(self.asked & self.known)
        if not len(whole):
            raise CohortError(f"{self.name}: no Lean check of it ran to its end")
        drawn = dict(zip(np.unique(self.check[gaps]), rng.choice(whole, len(np.unique(self.check[gaps]))), strict=True))
        source = np.array([drawn[check] for check in self.check[gaps]])
        seconds, verdict, dead = self.seconds.copy(), self.verdict.copy(), self.dead_s.copy()
        seconds[gaps], verdict[gaps], dead[gaps] = self.seconds[source], self.verdict[source], self.dead_s[source]
        return replace(self, seconds=seconds, verdict=verdict, dead_s=dead)

    def sample(self, candidates: int, batches: int, rng: np.random.Generator) -> Cohort:
        """Other batches of the same kind: whole groups drawn with replacement until each batch is full.

        Every drawn group is a new one, and no check is shared or cached, so that the work is that of new programs.
        """
        groups = _groups(self)
        wanted = candidates * batches
        chosen: list[Indices] = []
        count = 0
        while count < wanted:
            group = groups[int(rng.integers(len(groups)))]
            chosen.append(group)
            count += len(group)
        index = np.concatenate(chosen)[:wanted]
        group = np.concatenate([np.full(len(part), number) for number, part in enumerate(chosen)])[:wanted]
        return replace(
            self.take(index),
            batch=np.repeat(np.arange(batches), candidates),
            check=np.arange(wanted),
            group=group,
            cached_s=np.full(wanted, np.inf),
            answered_s=np.full(wanted, np.inf),
            arrival_s=np.zeros(batches),
            engines=np.full(batches, int(np.median(self.engines))),
            timeout_s=np.full(batches, self.timeout_s.max()),
            ended_s=np.full(batches, np.inf),
        )


_OF_CANDIDATES = (
    "batch",
    "check",
    "group",
    "problem",
    "asked",
    "seconds",
    "verdict",
    "limit_s",
    "dead_s",
    "known",
    "cached_s",
    "answered_s",
)
_OF_BATCHES = ("arrival_s", "engines", "timeout_s", "ended_s")


def _groups(cohort: Cohort) -> list[Indices]:
    """Indices of each group of each batch; a candidate without a group is one of its own."""
    alone = np.where(cohort.group < 0, -1 - np.arange(len(cohort)), cohort.group)
    order = np.lexsort((alone, cohort.batch))
    edges = np.flatnonzero((np.diff(cohort.batch[order]) != 0) | (np.diff(alone[order]) != 0)) + 1
    return [np.asarray(part) for part in np.split(order, edges)]
