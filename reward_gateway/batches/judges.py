"""Who decides batches: Lean's desk, the evaluators' desk, and what is known of how they did so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from reward_gateway.batches.desk import LeanDesk
from reward_gateway.evaluator.desk import EvaluatorDesk
from reward_gateway.quality.quality import Quality
from reward_gateway.scheduling.check_time import CheckTimePredictor
from reward_gateway.scheduling.policies import SchedulingPolicy


@dataclass(frozen=True, slots=True)
class Judges:
    """One for each gateway process, shared by its batches."""

    lean: LeanDesk
    evaluator: EvaluatorDesk
    quality: Quality
    check_times: CheckTimePredictor = field(default_factory=CheckTimePredictor)

    def predictor(self, scheduling: SchedulingPolicy) -> CheckTimePredictor | None:
        """What a batch predicts check times with and learns them for; None where nobody needs them."""
        return self.check_times if self.evaluator.configured or scheduling is not SchedulingPolicy.FIFO else None

    async def evaluator_is_present(self) -> bool:
        """Whether an evaluator can predict now; asked again when the last answer was no."""
        if not self.evaluator.present:
            await self.evaluator.look()
        return self.evaluator.present
