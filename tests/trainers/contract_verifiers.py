"""A verifiers task, scored by verifiers itself, against a live server."""

from __future__ import annotations

from typing import Any

import pytest
import verifiers.v1 as vf
from live import RESPONSES, REWARDS, STATEMENT, URL, Trouble

from reward_gateway.trainers.verifiers import ProofData, ProofTask


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Any:
    proxy = Trouble()
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", proxy.url)
    yield proxy
    proxy.stop()


async def scored(response: str) -> Any:
    task = ProofTask(ProofData(prompt="Prove it.", statement=STATEMENT))
    trace = vf.Trace.model_construct(rewards={}, metrics={}, info={}, root_reply=response, nodes=[], errors=[])
    await task.score(trace)
    return trace.rewards["lean"].score


async def test_every_reply_gets_its_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", URL)
    for response, reward in zip(RESPONSES, REWARDS, strict=True):
        assert await scored(response) == reward


async def test_a_restart_an_overload_and_a_slow_server_lose_no_reward(trouble: Trouble) -> None:
    with trouble.down_for(1.5):
        assert await scored(RESPONSES[0]) == 1.0
    trouble.overloads, trouble.delay_s = 1, 1.0
    assert await scored(RESPONSES[0]) == 1.0


async def test_a_server_that_stays_away_is_an_error_of_the_scoring_or_the_fallback(
    trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble.stop()
    monkeypatch.setattr("reward_gateway.client._SAMPLE_S", 0.5)
    monkeypatch.setenv("LEAN_REWARD_CLIENT_PATIENCE_S", "0.5")
    with pytest.raises(Exception, match=r"Unreachable|127\.0\.0\.1"):
        await scored(RESPONSES[0])
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "fallback")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_FALLBACK", "-1")
    assert await scored(RESPONSES[0]) == -1.0
