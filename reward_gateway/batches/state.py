"""One batch while it runs: what is asked, what has been answered, and whether the cutoff has come.

No I/O and no clock of its own: times are seconds since receipt, given by the caller.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from reward_gateway.batches.plan import Plan
from reward_gateway.batches.prepare import Preparation, Unusable
from services.contracts.jobs import JobProgress
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus
from services.contracts.proofs import Candidate, CutoffReason
from services.proofs.precheck import Rejection
from services.rewards.merge import LeanAnswer, prefer


@dataclass(frozen=True, slots=True)
class Cut:
    """The cutoff: why, and when (seconds since receipt)."""

    reason: CutoffReason
    at_s: float


class BatchState:
    """Candidates, their prechecks and jobs, and Lean's answers by key."""

    def __init__(self, plan: Plan, candidates: list[Candidate], received_at: float) -> None:
        self.plan = plan
        self.candidates = candidates
        self.received_at = received_at
        self.prepared: list[Preparation] = []
        self.answers: dict[str, LeanAnswer] = {}
        self.cached: set[str] = set()
        self.changed = asyncio.Event()
        self.complete = False
        self.lean_was_missing = False
        self.rejected = 0
        self.duplicates = 0
        self._members: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._decided_by_lean = 0
        self._last_s = 0.0

    def add(self, prepared: Preparation, at_s: float) -> bool:
        """Take in the next candidate. True when its check is new to this batch and has to be asked for."""
        self.prepared.append(prepared)
        if isinstance(prepared, Rejection):
            self.rejected += 1
            self._last_s = max(self._last_s, at_s)
            return False
        if isinstance(prepared, Unusable):
            return False
        key = prepared.key
        before = self._members.get(key, 0)
        self._members[key] = before + 1
        held = self.answers.get(key)
        if held is not None and held.decides:
            self._decided_by_lean += 1
        if before:
            self.duplicates += 1
            return False
        if held is None:  # else it came before the batch was prepared again (it was taken over)
            self._waiting.add(key)
        return held is None

    def all_added(self) -> None:
        """Every candidate is prepared and every check is asked for: the cutoff may now come early."""
        self.complete = True
        self.changed.set()

    def receive(self, key: str, outcome: LeanOutcome, at_s: float) -> None:
        """Take in Lean's answer for a key; also one that was not asked for yet."""
        held = self.answers.get(key)
        answer = prefer(held, LeanAnswer(outcome, at_s))
        if answer is held:
            return
        self.answers[key] = answer
        members = self._members.get(key, 0)
        self._decided_by_lean += members * (answer.decides - (held is not None and held.decides))
        self._waiting.discard(key)
        self._last_s = max(self._last_s, at_s)
        self.changed.set()

    @property
    def waiting(self) -> set[str]:
        """Keys that Lean was asked for and has not answered."""
        return self._waiting

    @property
    def decided(self) -> int:
        return self.rejected + self._decided_by_lean

    @property
    def pending(self) -> int:
        """Candidates that are not final yet."""
        return len(self.candidates) - self.decided

    def early_cut(self) -> Cut | None:
        """The cutoff, if an event before the deadline has brought it."""
        if not self.complete:
            return None
        if self.decided == len(self.candidates):
            return Cut(CutoffReason.DECIDED, self._last_s)
        if not self._waiting:
            # Lean has ended every check, some without a verdict. Without an evaluator nothing can change any more,
            # whatever the policy waits for.
            return Cut(CutoffReason.ALL, self._last_s)
        return None

    def without_lean(self) -> LeanStatus:
        """What to say of checks that never answered."""
        return LeanStatus.UNAVAILABLE if self.lean_was_missing else LeanStatus.CANCELLED

    def progress(self, elapsed_s: float) -> JobProgress:
        return JobProgress(
            candidates=len(self.candidates),
            decided=self.decided,
            lean=self._decided_by_lean,
            elapsed_s=round(elapsed_s, 3),
        )
