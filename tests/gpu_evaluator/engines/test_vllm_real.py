"""The vLLM engine against real vLLM servers on the CPU: `make test-vllm`.

Both servers run a tiny random Qwen3, are started by the evaluator as in production, and the feedback model speculates.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.engines.base import OverLength, Sampling
from gpu_evaluator.engines.serving.lengths import keep_ends
from gpu_evaluator.engines.serving.servers import ChildServer
from gpu_evaluator.engines.vllm.engine import VllmFeedback, VllmGate
from gpu_evaluator.pool import Stage
from services.contracts.outcomes import Reason
from services.runtime.settings import load_settings
from tests.gpu_evaluator.served import Served, serve, until
from tests.gpu_evaluator.tiny_qwen3 import CONTEXT, encode, exact_score, make_weights, write_folder

PYTHON = os.environ.get("LEAN_TEST_VLLM", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs a vLLM of its own: make test-vllm"),
    pytest.mark.asyncio(loop_scope="module"),
]

PROGRAMS = [f"theorem t{n} : {n} + {n} = {2 * n} := by omega\n" for n in range(40)] + ["⊢ ∀ α", "x"]
WEIGHTS = make_weights()
_START_S = 300.0


class Running:
    """The evaluator, its only pair and the servers behind it."""

    def __init__(self, served: Served, gate: VllmGate, feedback: VllmFeedback) -> None:
        self.served, self.gate, self.feedback = served, gate, feedback

    @staticmethod
    def process(engine: VllmGate | VllmFeedback) -> int:
        server = engine.server
        assert isinstance(server, ChildServer)
        assert server.process is not None
        return server.process.pid

    async def running_requests(self, engine: VllmGate | VllmFeedback) -> float:
        text = (await engine.link._client.get("/metrics")).text
        return sum(
            float(line.split()[-1]) for line in text.splitlines() if line.startswith("vllm:num_requests_running")
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_folder(folder, WEIGHTS)
    environment = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
    arguments = ("--enforce-eager", "--max-num-seqs=16", "--dtype=float32")
    settings = load_settings(
        evaluator={
            "engine": "vllm",
            "gate": str(folder),
            "feedback": str(folder),
            "gate_context": CONTEXT,
            "feedback_context": CONTEXT,
            "max_tokens": 48,
            "start_s": _START_S,
        },
        vllm={
            "command": (PYTHON, "-m", "vllm.entrypoints.openai.api_server"),
            "gate_arguments": arguments,
            "feedback_arguments": arguments,
        },
    )
    pairs = make_pairs(settings)
    gate, feedback = pairs[0].gate, pairs[0].feedback
    assert isinstance(gate, VllmGate)
    assert isinstance(feedback, VllmFeedback)
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        async with serve(pairs, threshold=0.0, health_s=1.0) as served:
            await until(lambda: all(pairs[0].up.values()), _START_S)
            yield Running(served, gate, feedback)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


async def test_scores_are_those_of_the_whole_vocabulary(running: Running) -> None:
    found = {index: answer async for index, answer in running.gate.score(PROGRAMS, priority=3)}
    for index, program in enumerate(PROGRAMS):
        assert found[index] == pytest.approx(exact_score(WEIGHTS, encode(program)), abs=1e-3)
    assert running.gate._has_priorities


async def test_of_a_program_that_is_too_long_both_ends_count(running: Running) -> None:
    program = "".join(f"-- line {n}\n" for n in range(300))
    ((_, score),) = [pair async for pair in running.gate.score([program])]
    assert score == pytest.approx(exact_score(WEIGHTS, keep_ends(encode(program), CONTEXT - 1)), abs=1e-3)
    ((_, answer),) = [pair async for pair in running.feedback.annotate([program], Sampling())]
    assert isinstance(answer, OverLength)


async def test_the_feedback_model_speculates_and_five_samples_differ(running: Running) -> None:
    ((_, traces),) = [pair async for pair in running.feedback.annotate(["x y x y x y x y\n" * 8], Sampling(5, 0.8))]
    assert isinstance(traces, tuple)
    assert len(traces) == 5
    assert len({trace.text for trace in traces}) > 1
    text = (await running.feedback.link._client.get("/metrics")).text
    drafted = [line for line in text.splitlines() if line.startswith("vllm:spec_decode_num_draft_tokens_total")]
    assert drafted
    assert float(drafted[0].split()[-1]) > 0


async def test_greedy_traces_repeat_and_end_at_the_output_limit(running: Running) -> None:
    first = {index: traces async for index, traces in running.feedback.annotate(PROGRAMS[:4], Sampling())}
    second = {index: traces async for index, traces in running.feedback.annotate(PROGRAMS[:4], Sampling())}
    assert first == second
    assert all(isinstance(traces, tuple) and traces[0].hit_limit for traces in first.values())


async def test_a_client_that_leaves_frees_the_server(running: Running) -> None:
    running.feedback._max_tokens = CONTEXT
    try:
        programs = [{"id": str(n), "code": program} for n, program in enumerate(PROGRAMS)]
        body = {"programs": programs, "method": "self_consistency"}
        async with running.served.client.stream("POST", "/v1/evaluate", json=body) as answer:
            assert await anext(answer.aiter_lines())
            assert await running.running_requests(running.feedback) > 1
        await until(lambda: running.served.evaluator.in_flight == 0)
        for _ in range(100):
            if await running.running_requests(running.feedback) == 0:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("the server still works for a client that has left")
    finally:
        running.feedback._max_tokens = 48


async def test_a_killed_gate_is_an_outage_and_comes_back(running: Running) -> None:
    pool = running.served.evaluator._pool
    os.kill(running.process(running.gate), signal.SIGKILL)
    lines = await running.served.evaluate(PROGRAMS[:3])
    assert {line.reason for line in lines} == {Reason.INFRASTRUCTURE}
    await until(lambda: not pool.serves(Stage.GATE), 30)
    assert (await running.served.client.get("/readyz")).status_code == 503
    await until(lambda: pool.serves(Stage.GATE), _START_S)
    lines = await running.served.evaluate(PROGRAMS[:3])
    assert {line.reason for line in lines} == {Reason.FEEDBACK_ERROR}  # traces of noise reach their limit
