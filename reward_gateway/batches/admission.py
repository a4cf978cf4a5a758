"""How much may be in flight, and when it is worth trying again."""

from __future__ import annotations

import math

from reward_gateway.errors import ProblemError
from services.contracts.problems import ProblemCode
from services.runtime import metrics

_SHORTEST_S, _LONGEST_S = 1, 600


class Admission:
    """Counts batches and candidates in flight in this process and refuses what is too much."""

    def __init__(self, *, max_batches: int, max_candidates: int) -> None:
        self._max_batches = max_batches
        self._max_candidates = max_candidates
        self.batches = 0
        self.candidates = 0

    def admit(self, candidates: int, *, rate: float, next_end_s: float | None) -> None:
        """Count a batch in. A batch larger than the bound is let in when nothing else is there.

        `rate`: candidates answered a second of late. `next_end_s`: the latest moment at which the first batch in flight
        ends, in seconds from now. Raises `ProblemError` (429).
        """
        if self.batches >= self._max_batches:
            raise _refused(f"{self.batches} batches", retry_after_s(math.inf, rate, next_end_s))
        excess = self.candidates + candidates - self._max_candidates
        if self.batches and excess > 0:
            raise _refused(f"{self.candidates} candidates", retry_after_s(excess, rate, next_end_s))
        self.count(candidates)

    def count(self, candidates: int) -> None:
        """Count a batch in that was admitted before, by a gateway that is gone."""
        self.batches += 1
        self.candidates += candidates
        self._show()

    def leave(self, candidates: int) -> None:
        self.batches -= 1
        self.candidates -= candidates
        self._show()

    def _show(self) -> None:
        metrics.BATCHES_IN_FLIGHT.set(self.batches)
        metrics.CANDIDATES_IN_FLIGHT.set(self.candidates)


def retry_after_s(excess: float, rate: float, next_end_s: float | None) -> int:
    """Whole seconds after which there should be room.

    The time that `excess` candidates take at the present rate, but not longer than until the next batch ends at the
    latest; between 1 s and 10 minutes.
    """
    by_rate = excess / rate if rate > 0 else math.inf
    estimate = min(by_rate, math.inf if next_end_s is None else next_end_s)
    return max(_SHORTEST_S, math.ceil(min(estimate, _LONGEST_S)))


def _refused(what: str, retry_s: int) -> ProblemError:
    return ProblemError(
        ProblemCode.TOO_MUCH_IN_FLIGHT, f"{what} are in flight already; try again later", retry_after_s=retry_s
    )
