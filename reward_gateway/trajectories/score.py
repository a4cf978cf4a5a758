"""The life of one group: read, outcomes beside segmentation and judgement, rewards, all before its deadline."""

from __future__ import annotations

import asyncio
import time

from reward_gateway.batches.book import Batches
from reward_gateway.trajectories.group import Group, penalise, read_group
from reward_gateway.trajectories.outcomes import prove
from reward_gateway.trajectories.rows import answer_of
from services.contracts.trajectories import TrajectoryScoreResponse
from services.process.penalties import NAMES
from services.runtime import metrics
from services.runtime.settings import GatewaySettings

_RESERVE_SHARE, _RESERVE_S = 0.1, 1.0


class Trajectories:
    """Scores groups of rollouts, one call each, as many at once as come."""

    def __init__(self, settings: GatewaySettings, batches: Batches) -> None:
        self._settings = settings
        self._batches = batches

    async def score(self, text: str, owner: str, received_at: float) -> bytes:
        """The JSON of a `TrajectoryScoreResponse` for the body `text`. Raises `ProblemError`."""
        # Reading, parsing commands and counting are work for a processor: beside the event loop, not on it.
        group = await asyncio.to_thread(read_group, text)
        deadline_s = self._settings.deadline_s if group.request.deadline_s is None else group.request.deadline_s
        # What waits for others ends a little before the deadline, so that the answer itself is there in time.
        ends_s = deadline_s - min(_RESERVE_S, _RESERVE_SHARE * deadline_s)
        await prove(group, self._batches, deadline_s=ends_s, received_at=received_at)
        return await asyncio.to_thread(_answer, group, received_at)


def _answer(group: Group, received_at: float) -> bytes:
    if group.wants_gamma and any(work.gammas is None for work in group.rollouts):
        penalise(group)
    answer = answer_of(group, time.monotonic() - received_at)
    _count(group, answer)
    return answer.model_dump_json().encode()


def _count(group: Group, answer: TrajectoryScoreResponse) -> None:
    metrics.GROUP_SECONDS.observe(answer.elapsed_s)
    for work, result in zip(group.rollouts, answer.rollouts, strict=True):
        metrics.ROLLOUTS.inc()
        for flag in result.flags:
            metrics.ROLLOUT_FLAGS.labels(flag.value).inc()
        for row in work.gammas or ():
            metrics.STEPS_JUDGED.inc()
            for rule in row.rules:
                metrics.PENALTIES.labels(NAMES[rule]).inc()
