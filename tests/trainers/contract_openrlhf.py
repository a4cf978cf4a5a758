"""OpenRLHF's own executor, with a stand-in for vLLM and its tokenizer, against a live server in both forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from live import RESPONSES, REWARDS, STATEMENT, URL, Trouble
from openrlhf.utils.agent import SingleTurnAgentExecutor

from reward_gateway.trainers import openrlhf as adapter

PROMPT = f"Prove it:\n```lean\n{STATEMENT} := by omega\n```\n"  # code in the prompt must not count


class Tokens(list):
    def tolist(self) -> list[int]:
        return list(self)


class Tokenizer:
    """One token a character."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": [Tokens(map(ord, text))]}

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(map(chr, ids))


class Engine:
    """Generates what the test says."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def generate(self, *_: Any, **__: Any) -> Any:
        output = SimpleNamespace(
            token_ids=list(map(ord, self.text)), text=self.text, finish_reason="stop", logprobs=None
        )
        return SimpleNamespace(outputs=[output])


async def execute(endpoint: str, response: str) -> dict[str, Any]:
    parameters = SimpleNamespace(max_tokens=10_000, logprobs=None)
    executor = SingleTurnAgentExecutor(endpoint)
    return await executor.execute(PROMPT, STATEMENT, parameters, 100_000, Tokenizer(), Engine(response))


@pytest.fixture(params=["http", "file"])
def trouble_and_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    trouble = Trouble()
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", trouble.url)
    yield trouble, (f"{trouble.url}/compat/openrlhf" if request.param == "http" else adapter.__file__)
    trouble.stop()


@pytest.mark.parametrize("endpoint", [f"{URL}/compat/openrlhf", adapter.__file__])
async def test_every_response_gets_its_reward(endpoint: str) -> None:
    for response, reward in zip(RESPONSES, REWARDS, strict=True):
        output = await execute(endpoint, response)
        assert _scalar(output["reward"]) == reward
        assert _scalar(output["scores"]) == reward
        assert all(isinstance(_scalar(value), float) for value in output["extra_logs"].values())
    assert _scalar((await execute(endpoint, "no idea"))["reward"]) == 0.0


async def test_a_restart_an_overload_and_a_slow_server_lose_no_reward(trouble_and_endpoint: Any) -> None:
    trouble, endpoint = trouble_and_endpoint
    with trouble.down_for(1.5):
        assert _scalar((await execute(endpoint, RESPONSES[0]))["reward"]) == 1.0
    trouble.overloads, trouble.delay_s = 1, 1.0
    assert _scalar((await execute(endpoint, RESPONSES[0]))["reward"]) == 1.0
    trouble.failures = 2
    assert _scalar((await execute(endpoint, RESPONSES[1]))["reward"]) == 0.0


def _scalar(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value
