"""gamma of every step of a trajectory (lean4agenticrl, Sections 2.3.3 and I.2): -1 where a rule fires, else 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.process.penalties import constant_output, no_action, no_op, no_progress, pure_print, repetition
from services.process.penalties.actions import ActionReader, Place, turns
from services.process.penalties.evidence import Penalty
from services.process.trajectories import Phase, Step

RULES = (repetition.check, no_op.check, constant_output.check, pure_print.check, no_action.check, no_progress.check)


@dataclass(frozen=True, slots=True)
class StepGamma:
    """``gamma`` is -1 exactly when there is a penalty; ``penalties`` are in the order of the rules' numbers."""

    step: int
    stage: str | None
    visit: int
    gamma: int
    penalties: tuple[Penalty, ...]

    @property
    def rules(self) -> tuple[int, ...]:
        return tuple(penalty.rule for penalty in self.penalties)


def gamma(
    steps: Sequence[Step], reader: ActionReader | None = None, places: Sequence[Place] | None = None
) -> list[StepGamma]:
    """One row a step. Time is linear in the steps. Planning steps are never penalised and are no earlier runs: their
    reward is alpha alone. ``reader`` may be shared by the trajectories of a batch, which often run the same commands;
    ``places`` gives each step's stage visit where a segmentation decided it.
    """
    made = turns(steps, reader or ActionReader(), places)
    executed = [turn for turn in made if turn.step.phase is Phase.EXEC]
    found: dict[int, list[Penalty]] = {}
    for check in RULES:
        for penalty in check(executed):
            found.setdefault(penalty.step, []).append(penalty)
    rows = []
    for turn in made:
        penalties = tuple(found.get(turn.step.index, ()))
        rows.append(StepGamma(turn.step.index, turn.stage, turn.visit, -1 if penalties else 0, penalties))
    return rows
