"""How much may be in flight in this process, who is refused first, and when it is worth trying again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from reward_gateway.limits.drain import DrainRate
from services.contracts.base import MAX_PRIORITY
from services.contracts.problems import ProblemCode
from services.runtime import metrics
from services.runtime.problems import ProblemError

_SHORTEST_S, _LONGEST_S = 1, 600
_GREED = 4
"""A caller may hold so many times what is free, which leaves room for others however much one sends (dynamic
thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998)."""


def share_of(priority: int, shed_from: float) -> float:
    """The part of every bound that batches of a priority may fill: 1 at the highest, `shed_from` at the lowest."""
    return shed_from + (1.0 - shed_from) * (priority + MAX_PRIORITY) / (2 * MAX_PRIORITY)


class Admission:
    """Counts batches and candidates in flight in this process, by caller, and refuses what is too much.

    `shared`: several callers are known, so none of them may take all.
    """

    def __init__(
        self,
        *,
        max_batches: int,
        max_candidates: int,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_batches = max_batches
        self._max_candidates = max_candidates
        self._shared = shared
        self._held: dict[str, int] = {}
        self._drain = DrainRate(clock)
        self._clock = clock
        self._told: dict[str, tuple[float, int]] = {}  # who was refused: when to come back, and with how much
        self.batches = 0
        self.candidates = 0

    def admit(self, owner: str, candidates: int, *, share: float = 1.0, next_end_s: float | None = None) -> None:
        """Count a batch in. A batch larger than the bound is let in when nothing else is there.

        `share`: the part of the bounds that the batch may fill, see `share_of`. `next_end_s`: seconds until the first
        batch in flight ends at the latest. Raises `ProblemError` (429).
        """
        most = max(1, math.floor(self._max_batches * share)) if self._max_batches else 0
        if self.batches >= most:
            raise _refused(f"{self.batches} batches", retry_after_s(math.inf, self._drain.rate, next_end_s))
        excess = self.candidates + candidates - self._max_candidates * share
        if self.batches and excess > 0:
            retry_s = retry_after_s(excess + self._ahead_of(owner), self._drain.rate, next_end_s)
            self._told[owner] = (self._clock() + retry_s, candidates)
            raise _refused(f"{self.candidates} candidates", retry_s)
        held, free = self._held.get(owner, 0), self._max_candidates - self.candidates
        if self._shared and held and (excess := held + candidates - _GREED * free) > 0:
            # Each candidate that ends makes room twice: this caller holds less, and more is free.
            retry_s = retry_after_s(excess / (1 + _GREED), self._drain.rate, next_end_s)
            raise _refused(f"{held} candidates of this key", retry_s)
        self._told.pop(owner, None)
        self.count(owner, candidates)

    def _ahead_of(self, owner: str) -> int:
        """Candidates of other callers who were told to come back and have not: they will want the same room."""
        now = self._clock()
        self._told = {name: told for name, told in self._told.items() if told[0] > now}
        return sum(candidates for name, (_, candidates) in self._told.items() if name != owner)

    def count(self, owner: str, candidates: int) -> None:
        """Count a batch in that was admitted before, by a gateway that is gone."""
        if not self.batches:
            self._drain.restart()
        self.batches += 1
        self.candidates += candidates
        self._held[owner] = self._held.get(owner, 0) + candidates
        self._show()

    def leave(self, owner: str, candidates: int) -> None:
        self.batches -= 1
        self.candidates -= candidates
        self._drain.add(candidates)
        self._held[owner] -= candidates
        if not self._held[owner]:
            del self._held[owner]
        self._show()

    def _show(self) -> None:
        metrics.BATCHES_IN_FLIGHT.set(self.batches)
        metrics.CANDIDATES_IN_FLIGHT.set(self.candidates)


def retry_after_s(excess: float, rate: float, next_end_s: float | None) -> int:
    """Whole seconds after which there should be room.

    The time that `excess` candidates take at the present rate; where no rate is known, or no number, until the next
    batch ends at the latest; between 1 s and 10 minutes.
    """
    by_rate = excess / rate if rate > 0 else math.inf
    estimate = by_rate if by_rate < math.inf or next_end_s is None else next_end_s
    return max(_SHORTEST_S, math.ceil(min(estimate, _LONGEST_S)))


def _refused(what: str, retry_s: int) -> ProblemError:
    return ProblemError(
        ProblemCode.TOO_MUCH_IN_FLIGHT, f"{what} are in flight already; try again later", retry_after_s=retry_s
    )
