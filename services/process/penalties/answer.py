"""Gamma on the wire: a record in, the contract's rows out."""

from __future__ import annotations

from typing import Any

from services.contracts.trajectories import MAX_STEPS, Evidence, StepPenalty
from services.process.penalties.actions import ActionReader
from services.process.penalties.evidence import quoted
from services.process.penalties.gamma import StepGamma, gamma
from services.process.trajectories import TrajectoryError, read_trajectory


def penalties_of(record: Any, format: str | None = None, reader: ActionReader | None = None) -> tuple[StepPenalty, ...]:
    """A row for every step of one record. Raises ``TrajectoryError`` when it does not fit, or is too long."""
    steps = read_trajectory(record, format)
    if len(steps) > MAX_STEPS:
        raise TrajectoryError("", f"{len(steps)} steps, at most {MAX_STEPS} are judged")
    return tuple(_row(row) for row in gamma(steps, reader))


def _row(row: StepGamma) -> StepPenalty:
    return StepPenalty(
        step=row.step,
        stage=None if row.stage is None else quoted(row.stage),
        visit=row.visit,
        gamma=row.gamma,
        rules=row.rules,
        evidence=tuple(
            Evidence(rule=p.rule, detail=p.detail, quote=p.quote, earlier_step=p.earlier_step) for p in row.penalties
        ),
    )
