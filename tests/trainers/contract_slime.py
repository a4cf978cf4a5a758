"""slime's remote reward call, replayed: what its `remote_rm` sends, how it retries, what it accepts.

slime is on no package registry. The call below is written after its contract (0.3.1): one POST a sample through one
aiohttp session of at most 64 connections and 120 s, `prompt`, `response`, `label`; ten attempts with a growing pause;
the answer must be 2xx and `application/json`.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import aiohttp
import torch
from live import CHEAT, RESPONSES, REWARDS, RIGHT, STATEMENT, URL, WRONG, Trouble

from reward_gateway.trainers import slime


async def remote_rm(session: aiohttp.ClientSession, url: str, response: str, label: Any) -> Any:
    sent = {"prompt": [{"role": "user", "content": "Prove it."}], "response": response, "label": label}
    for attempt in range(10):
        try:
            async with session.post(url, json=sent) as answer:
                answer.raise_for_status()
                return await answer.json()
        except (aiohttp.ClientError, asyncio.TimeoutError):
            if attempt == 9:
                raise
            await asyncio.sleep(min(2**attempt * 0.2, 30))
    raise AssertionError


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120), connector=aiohttp.TCPConnector(limit=64))


async def test_every_response_gets_its_reward_under_the_reward_key() -> None:
    async with session() as http:
        for label in (STATEMENT, {"statement": STATEMENT, "group": 3}):
            answers = await asyncio.gather(*(remote_rm(http, f"{URL}/compat/slime", r, label) for r in RESPONSES))
            assert tuple(answer["score"] for answer in answers) == REWARDS
            assert {answer["status"] for answer in answers} == {"decided"}


async def test_a_key_may_stand_in_the_url() -> None:
    async with session() as http:
        answer = await remote_rm(http, f"{URL.replace('//', '//key:@')}/compat/slime", RIGHT, STATEMENT)
        assert answer["score"] == 1.0


async def test_no_call_is_lost_over_a_restart_an_overload_and_a_slow_server() -> None:
    trouble = Trouble()
    responses = [f"{i}: {text}" for i in range(20) for text in (RIGHT, WRONG, CHEAT)]
    async with session() as http:
        calls = [asyncio.create_task(remote_rm(http, f"{trouble.url}/compat/slime", r, STATEMENT)) for r in responses]
        await asyncio.sleep(0.2)
        trouble.overloads, trouble.delay_s = 5, 0.5
        with trouble.down_for(1.5):
            await asyncio.sleep(0.1)
        assert [(await call)["score"] for call in calls] == list(REWARDS) * 20
    trouble.stop()


async def test_the_adapters_hooks_give_tensors_to_the_loss(monkeypatch: Any) -> None:
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", URL)
    samples = [
        SimpleNamespace(
            response=text, response_length=3, group_index=0, label=STATEMENT, metadata={}, reward=None, loss_mask=None
        )
        for text in RESPONSES
    ]
    for sample, given in zip(samples, await slime.reward(None, samples), strict=True):
        sample.reward = given
    raw, rewards = slime.post_process(SimpleNamespace(), samples)
    assert raw == list(REWARDS)
    data = {"rewards": rewards, "loss_masks": [torch.tensor([1, 0, 1])] * 3, "response_lengths": [3] * 3}
    slime.advantages(None, data)
    expected = (torch.tensor(REWARDS) - torch.tensor(REWARDS).mean()) / torch.tensor(REWARDS).std()
    for row, value in zip(data["advantages"], expected, strict=True):
        torch.testing.assert_close(row, value * torch.tensor([1.0, 0.0, 1.0]), atol=1e-4, rtol=1e-4)
