"""The llama.cpp engine against its real server, on a tiny random Qwen3."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.engines.base import EngineFault, Generation, OverLength, Sampling
from gpu_evaluator.engines.llamacpp.engine import LlamaCppFeedback, LlamaCppGate, LlamaCppOptions
from gpu_evaluator.engines.serving.lengths import keep_ends
from services.contracts.outcomes import Reason
from services.runtime.settings import load_settings
from tests.gpu_evaluator.served import serve, until
from tests.gpu_evaluator.tiny_qwen3 import CONTEXT, TOKENS, encode, exact_score, make_weights, write_gguf

pytest.importorskip("xllamacpp")
gguf = pytest.importorskip("gguf")

PROGRAMS = [f"theorem t{n} : {n} + {n} = {2 * n} := by omega\n" for n in range(24)] + ["⊢ ∀ α", "x"]
WEIGHTS = make_weights()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, WEIGHTS)
    return path


def options(model: Path, context: int = CONTEXT) -> LlamaCppOptions:
    return LlamaCppOptions(model, context, slots=2, threads=1, gpu_layers=0, start_s=60)


@pytest.fixture
async def gate(model: Path) -> AsyncIterator[LlamaCppGate]:
    engine = LlamaCppGate(options(model), "4.15.0")
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
async def feedback(model: Path) -> AsyncIterator[LlamaCppFeedback]:
    engine = LlamaCppFeedback(options(model), "4.15.0", max_tokens=24)
    await engine.start()
    yield engine
    await engine.stop()


async def test_scores_are_those_of_the_whole_vocabulary(gate: LlamaCppGate) -> None:
    found = {index: answer async for index, answer in gate.score(PROGRAMS)}
    assert sorted(found) == list(range(len(PROGRAMS)))
    for index, program in enumerate(PROGRAMS):
        assert found[index] == pytest.approx(exact_score(WEIGHTS, encode(program)), abs=2e-3)  # its cache is FP16


async def test_of_a_program_that_is_too_long_the_gate_keeps_head_and_tail(gate: LlamaCppGate) -> None:
    program = "".join(f"-- line {n}\n" for n in range(300))
    ((_, score),) = [pair async for pair in gate.score([program])]
    assert score == pytest.approx(exact_score(WEIGHTS, keep_ends(encode(program), CONTEXT - 1)), abs=2e-3)


async def test_a_feedback_model_rejects_what_is_too_long(feedback: LlamaCppFeedback) -> None:
    ((_, answer),) = [pair async for pair in feedback.annotate(["x" * CONTEXT], Sampling())]
    assert isinstance(answer, OverLength)


async def test_traces_stop_at_the_output_limit_and_greedy_ones_repeat(feedback: LlamaCppFeedback) -> None:
    for program in PROGRAMS[:3]:  # one at a time: what shares a batch can change the last bits
        ((_, traces),) = [pair async for pair in feedback.annotate([program], Sampling())]
        assert [(0, traces)] == [pair async for pair in feedback.annotate([program], Sampling())]
        assert isinstance(traces, tuple)
        assert [type(trace) for trace in traces] == [Generation]
        assert traces[0].hit_limit


async def test_five_samples_differ(feedback: LlamaCppFeedback) -> None:
    ((_, traces),) = [pair async for pair in feedback.annotate(PROGRAMS[:1], Sampling(5, 0.8))]
    assert isinstance(traces, tuple)
    assert len({trace.text for trace in traces}) > 1
    assert len(traces) == 5


async def test_labels_of_more_than_one_token_are_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "labels.gguf"
    write_gguf(path, WEIGHTS, tokens=[token if token != "true" else "truE" for token in TOKENS], merges=("t r",))
    engine = LlamaCppGate(options(path), None)
    with pytest.raises(EngineFault, match="one token each"):
        await engine.start()
    assert engine.server.process is None


async def test_a_file_that_is_no_model_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"GGUF and nothing")
    with pytest.raises(EngineFault, match="ended with status"):
        await LlamaCppGate(options(path), None).start()


async def test_closing_the_stream_frees_the_slots(model: Path) -> None:
    engine = LlamaCppFeedback(options(model, context=CONTEXT), None, max_tokens=CONTEXT)
    await engine.start()
    try:
        stream = engine.annotate([f"{program} {n}" for n in range(40) for program in PROGRAMS[:1]], Sampling(5, 2.0))
        await stream.__anext__()
        await stream.aclose()  # type: ignore[attr-defined]
        ((_, traces),) = [pair async for pair in engine.annotate(["x"], Sampling())]
        assert isinstance(traces, tuple)
    finally:
        await engine.stop()


async def test_a_killed_server_is_started_again_by_the_service(model: Path) -> None:
    settings = load_settings(
        evaluator={"engine": "llamacpp", "gate": str(model), "feedback": str(model), "gate_context": CONTEXT}
        | {"feedback_context": CONTEXT, "max_tokens": 16}
    )
    pairs = make_pairs(settings)
    gate = pairs[0].gate
    assert isinstance(gate, LlamaCppGate)
    async with serve(pairs, threshold=0.0) as served:
        await served.until_ready()
        lines = await served.evaluate(PROGRAMS[:4])
        assert {line.reason for line in lines} == {Reason.FEEDBACK_ERROR}  # traces of noise reach their limit
        assert gate.server.process is not None
        os.kill(gate.server.process.pid, signal.SIGKILL)
        await until(lambda: not pairs[0].up[next(iter(pairs[0].up))])
        await served.until_ready()
        lines = await asyncio.wait_for(served.evaluate(PROGRAMS[:4]), 20)
        assert {line.reason for line in lines} == {Reason.FEEDBACK_ERROR}
