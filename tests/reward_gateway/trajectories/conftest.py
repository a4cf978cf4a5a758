"""A gateway with a scripted judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from services.runtime.settings import Settings, load_settings
from tests.reward_gateway.place import Place, Served
from tests.reward_gateway.trajectories.scripted_judge import Say, ScriptedJudge


@dataclass
class JudgedPlace(Place):
    """A place whose gateways have a judge."""

    judge: dict[str, Any]

    def settings(self, **gateway: Any) -> Settings:
        return load_settings(
            queue={"url": self.url, "prefix": self.prefix},
            gateway={"port": 0, "deadline_s": 20.0, **gateway},
            judge=self.judge,
        )


Judged = Callable[..., Awaitable[tuple[Served, ScriptedJudge]]]


@pytest.fixture
def judged_gateway(place: Place) -> Judged:
    """Starts a scripted judge and a gateway that uses it: `served, judge = await judged_gateway(say, **settings)`."""

    async def start(say: Say, *, over_http: bool = False, **settings: Any) -> tuple[Served, ScriptedJudge]:
        judge = ScriptedJudge(say)
        await judge.start()
        place.stack.push_async_callback(judge.stop)
        chosen = {"url": judge.url, "model": "scripted", "retries": 1, "timeout_s": 5.0, **settings}
        there = JudgedPlace(place.url, place.prefix, place.stack, chosen)
        return await (there.http() if over_http else there.gateway()), judge

    return start
