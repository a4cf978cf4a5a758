"""What the handlers of other programs' protocols share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request

from reward_gateway.compat.joiner import Joiner
from reward_gateway.compat.patience import unless_gone
from reward_gateway.compat.reward import failure_reward, sample_reward
from reward_gateway.compat.samples import Sample
from services.contracts.compat import SampleReward
from services.contracts.problems import ProblemCode
from services.runtime import metrics
from services.runtime.problems import ProblemError
from services.runtime.settings import CompatSettings

FAILURES = (
    ProblemCode.QUEUE_FULL,
    ProblemCode.QUEUE_UNAVAILABLE,
    ProblemCode.LEAN_UNAVAILABLE,
    ProblemCode.EVALUATOR_UNAVAILABLE,
    ProblemCode.SHUTTING_DOWN,
)
"""Of our own part: what is still in the way after the server has waited for it to pass."""


def settings_of(request: Request) -> CompatSettings:
    settings: CompatSettings = request.app.state.compat
    return settings


async def rewards_of(request: Request, samples: Sequence[Sample], received_at: float, route: str) -> list[SampleReward]:
    """The rewards of the samples of one call, in order, through the joiner.

    Raises `ProblemError`: one of them could not be scored, and the settings make that an error; `ClientDisconnect`.
    """
    joiner: Joiner = request.app.state.joiner
    settings = settings_of(request)

    async def one(sample: Sample) -> SampleReward:
        try:
            reward = sample_reward(await joiner.score(sample, received_at), settings)
        except ProblemError as error:
            reward = failure_reward(error, settings)
        metrics.COMPAT_SAMPLES.labels(route, reward.status).inc()
        return reward

    return await unless_gone(request, asyncio.gather(*(one(sample) for sample in samples)))
