"""The guard: when the evaluator accepts too many wrong proofs, its positives are no longer believed."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.quality.wilson import wilson
from services.contracts.evaluator import Confusion, GuardMode


@dataclass(frozen=True, slots=True)
class Guard:
    """`limit`: the false-positive rate that the lower Wilson bound must pass before the evaluator is distrusted."""

    mode: GuardMode = GuardMode.WARN
    limit: float = 0.25

    def distrusts(self, audited: Confusion) -> bool:
        """Whether the audit sample shows, with 95% confidence, a false-positive rate above the limit."""
        if self.mode is GuardMode.OFF:
            return False
        rate = wilson(audited.false_positive, audited.false_positive + audited.true_negative)
        return rate is not None and rate.low > self.limit
