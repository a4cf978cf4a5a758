"""Every operation of the server, in the order of the documentation."""

from __future__ import annotations

from reward_gateway.operations import Operation
from reward_gateway.routes import evaluate, health, jobs, live, metrics, penalties, proofs, quality, trajectories, votes
from reward_gateway.routes.compat import kimina, openrlhf, slime

OPERATIONS: tuple[Operation, ...] = (
    *proofs.OPERATIONS,
    *jobs.OPERATIONS,
    *trajectories.OPERATIONS,
    *penalties.OPERATIONS,
    *votes.OPERATIONS,
    *evaluate.OPERATIONS,
    *quality.OPERATIONS,
    *slime.OPERATIONS,
    *openrlhf.OPERATIONS,
    *kimina.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    *live.OPERATIONS,
)
