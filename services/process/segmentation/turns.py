"""The turns of a trajectory: steps that are decided on together."""

from __future__ import annotations

from collections.abc import Sequence

from services.process.certificates.claims import Decision, Row
from services.process.trajectories import Step


def turns_of(steps: Sequence[Step]) -> list[list[Step]]:
    """Reasoning-only steps join the next one that acts; at the end they are a turn of their own."""
    turns: list[list[Step]] = []
    waiting: list[Step] = []
    for step in steps:
        waiting.append(step)
        if step.calls:
            turns.append(waiting)
            waiting = []
    if waiting:
        turns.append(waiting)
    return turns


def step_rows(turn: Sequence[Step], row: Row) -> list[Row]:
    """The row of a turn as one row a step: the first one moves, the others stay where it went."""
    return [row, *(Row(Decision.STAY, row.node, row.visit) for _ in turn[1:])]
