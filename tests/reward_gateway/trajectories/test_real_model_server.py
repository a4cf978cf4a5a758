"""The same client against a real model server (llama.cpp) with a tiny random model that a JSON schema guides.

The model knows nothing, so its words are noise, sometimes bytes on which the server itself fails; fifteen replicas make
sure of some answers. What is tested is that questions, schemas and answers pass through a real server, and that noise
never earns beta.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.gpu_evaluator import tiny_qwen3
from tests.reward_gateway.place import Place
from tests.reward_gateway.trajectories.conftest import JudgedPlace
from tests.reward_gateway.trajectories.rollouts import group, rollout, steps, workflow

pytest.importorskip("xllamacpp")
pytest.importorskip("gguf")

from gpu_evaluator.engines.llamacpp.engine import LlamaCppFeedback, LlamaCppOptions


@pytest_asyncio.fixture
async def model_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setattr(tiny_qwen3, "CONTEXT", 16_384)  # its tokens are bytes, so questions are long
    path = tmp_path / "tiny.gguf"
    tiny_qwen3.write_gguf(path, tiny_qwen3.make_weights())
    options = LlamaCppOptions(model=path, context=16_384, slots=2, threads=1, gpu_layers=0, start_s=60.0)
    engine = LlamaCppFeedback(options, None, 16)
    url = await engine.server.start()
    yield f"{url}/v1"
    await engine.server.stop()


@pytest.mark.slow
async def test_questions_and_answers_pass_through_a_real_server(place: Place, model_url: str) -> None:
    judge = {"url": model_url, "model": "tiny", "temperature": 1.5, "timeout_s": 60.0, "retries": 2, "replicas": 15}
    there = JudgedPlace(place.url, place.prefix, place.stack, judge)
    served = await there.gateway()
    served.client.timeout = 200
    body = group(rollout(trajectory=steps("ls", "make"), workflow=workflow()), deadline_s=180)
    response = await served.client.post("/v1/trajectories/score", json=body)
    assert response.status_code == 200, response.text
    (result,) = response.json()["rollouts"]
    assert all(row["node"] in (0, 1, 2) for row in result["steps"])
    assert "unsegmented" not in result["flags"]
    assert result["stages"]
    answered = 0
    for stage in result["stages"]:
        votes = (await served.client.get(f"/v1/votes/{stage['votes']}")).json()
        for replica in votes["replicas"]:
            answered += replica["answered"]
            if replica["answered"]:
                assert replica["requirements"][0]["judgement"] in ("support", "contradiction", "insufficient")
            assert replica["vote"] == -1
        assert stage["beta"] in (-1, None)
    assert answered
