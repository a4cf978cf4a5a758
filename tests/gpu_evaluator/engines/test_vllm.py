"""The vLLM engine: its command lines, and requests to a scripted server (`make test-vllm` has the real one)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.engines.base import EngineFault, FeedbackAnswer, GateAnswer, Generation, OverLength, Sampling
from gpu_evaluator.engines.serving.servers import RemoteServer
from gpu_evaluator.engines.vllm.command import ServerPlan, feedback_command, gate_command
from gpu_evaluator.engines.vllm.engine import AsleepInTurns, VllmFeedback, VllmGate
from gpu_evaluator.pool import InTurns, Stage
from services.contracts.outcomes import Reason
from services.runtime.settings import SettingsError, load_settings
from tests.gpu_evaluator.engines.scripted_openai import CONTEXT, FALSE, TRUE, ScriptedOpenAI, listening, malformed
from tests.gpu_evaluator.served import serve, until

PLAN = ServerPlan(("vllm", "serve"), "org/gate", 4096, 0.5, "0")


@contextlib.asynccontextmanager
async def gate_of(script: ScriptedOpenAI) -> AsyncIterator[VllmGate]:
    async with listening(script):
        engine = VllmGate(RemoteServer(script.url), "4.15.0")
        await engine.start()
        script.bodies.clear()
        yield engine
        await engine.stop()


@contextlib.asynccontextmanager
async def feedback_of(script: ScriptedOpenAI, max_tokens: int = 100) -> AsyncIterator[VllmFeedback]:
    async with listening(script):
        engine = VllmFeedback(RemoteServer(script.url), "4.15.0", max_tokens)
        await engine.start()
        script.bodies.clear()
        yield engine
        await engine.stop()


async def scores(gate: VllmGate, programs: Sequence[str], priority: int = 0) -> dict[int, GateAnswer]:
    return {index: answer async for index, answer in gate.score(programs, priority=priority)}


async def traces(feedback: VllmFeedback, program: str, sampling: Sampling = Sampling()) -> FeedbackAnswer:  # noqa: B008
    ((_, answer),) = [pair async for pair in feedback.annotate([program], sampling)]
    return answer


def test_the_gate_never_speculates() -> None:
    assert not any("spec" in argument for argument in gate_command(PLAN, 1))
    for argument in ("--speculative-config={}", "--speculative_config", "--speculative-model=x", "--spec-tokens=8"):
        with pytest.raises(ValueError, match="must not speculate"):
            gate_command(ServerPlan(("vllm", "serve"), "m", 4096, 0.5, "0", arguments=(argument,)), 1)


def test_the_feedback_model_drafts_eight_tokens_by_ngram() -> None:
    (argument,) = [a for a in feedback_command(PLAN, 1, 8) if a.startswith("--speculative-config=")]
    assert json.loads(argument.partition("=")[2]) == {
        "method": "ngram",
        "num_speculative_tokens": 8,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 2,
    }
    assert feedback_command(PLAN, 1, 0) == gate_command(PLAN, 1)


def test_servers_listen_on_the_loopback_interface_and_rank_requests() -> None:
    command = gate_command(PLAN, 7)
    assert command[:3] == ["vllm", "serve", "org/gate"]
    assert {"--host=127.0.0.1", "--port=7", "--max-model-len=4096", "--scheduling-policy=priority"} <= set(command)
    assert not any(argument.startswith("--quantization") for argument in command)
    assert "--model" in gate_command(ServerPlan(("python", "-m", "x"), "m", 1, 0.5, "0"), 7)
    asleep = ServerPlan(("vllm", "serve"), "m", 4096, 0.9, "3", quantization="fp8", sleeps=True)
    assert {"--quantization=fp8", "--enable-sleep-mode"} <= set(gate_command(asleep, 7))
    assert asleep.environment["VLLM_SERVER_DEV_MODE"] == "1"
    assert asleep.environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert "VLLM_SERVER_DEV_MODE" not in PLAN.environment


async def test_a_score_is_normalised_over_both_labels() -> None:
    script = ScriptedOpenAI(score=lambda prompt: 0.25)
    async with gate_of(script) as gate:
        assert await scores(gate, ["x", "y"], priority=3) == {0: pytest.approx(0.25), 1: pytest.approx(0.25)}
        for body in script.bodies:
            assert body["logprob_token_ids"] == [TRUE, FALSE]
            assert body["max_tokens"] == 1
            assert body["temperature"] == 0
            assert body["priority"] == -3  # vLLM runs lower numbers first


async def test_requests_of_the_feedback_model_never_ask_for_label_scores() -> None:
    script = ScriptedOpenAI(speculates=True)
    async with feedback_of(script) as feedback:
        answer = await traces(feedback, "theorem", Sampling(3, 0.8))
        assert answer == tuple(Generation(f"theorem#{n}", hit_limit=False) for n in range(3))
        (body,) = script.bodies
        assert not {key for key in body if "logprob" in key}
        assert (body["n"], body["temperature"]) == (3, 0.8)


async def test_a_gate_that_speculates_is_refused_at_the_start() -> None:
    with pytest.raises(EngineFault, match="does it speculate"):
        async with gate_of(ScriptedOpenAI(speculates=True)):
            pass


async def test_labels_of_two_tokens_are_refused_at_the_start() -> None:
    with pytest.raises(EngineFault, match="one token each"):
        async with gate_of(ScriptedOpenAI(labels={"true": [1, 2], "false": [3]})):
            pass


async def test_a_server_without_priorities_is_asked_without_them() -> None:
    script = ScriptedOpenAI(priorities=False)
    async with gate_of(script) as gate:
        assert await scores(gate, ["good"], priority=5) == {0: pytest.approx(0.9)}
        assert "priority" not in script.bodies[0]


async def test_of_a_long_program_the_gate_keeps_both_ends_and_the_feedback_model_rejects_it() -> None:
    program = "".join(chr(97 + n % 26) for n in range(200))
    script = ScriptedOpenAI()
    async with gate_of(script) as gate:
        await scores(gate, [program])
        kept = bytes(script.bodies[0]["prompt"]).decode()
        assert len(kept) == CONTEXT - 1
        assert kept == program[:15] + program[-48:]
    async with feedback_of(ScriptedOpenAI()) as feedback:
        assert isinstance(await traces(feedback, program), OverLength)


async def test_the_output_limit_is_what_the_context_leaves() -> None:
    script = ScriptedOpenAI(finish="length")
    async with feedback_of(script) as feedback:
        answer = await traces(feedback, "x" * 20)
        assert isinstance(answer, tuple)
        assert answer[0].hit_limit
        assert script.bodies[0]["max_tokens"] == CONTEXT - 20


@pytest.mark.parametrize("kind", ["no json", "nested", "no choices", "no labels", "infinite", "refused", "cut off"])
async def test_a_malformed_answer_is_a_fault_of_that_program_alone(kind: str) -> None:
    script = ScriptedOpenAI()
    async with gate_of(script) as gate:
        script.answer = lambda body: malformed(kind) if "odd" in body["prompt"] else None
        found = await scores(gate, ["odd", "good"])
        assert isinstance(found[0], EngineFault)
        assert found[1] == pytest.approx(0.9)


async def test_an_aborted_generation_is_a_fault_and_no_trace() -> None:
    script = ScriptedOpenAI()
    async with feedback_of(script) as feedback:
        script.finish = "abort"
        assert isinstance(await traces(feedback, "good"), EngineFault)


async def test_closing_the_stream_closes_the_connections() -> None:
    script = ScriptedOpenAI()
    async with gate_of(script) as gate:
        script.delay_s = 20
        stream = gate.score(["a", "b", "c"])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.__anext__(), 0.3)
        await until(lambda: script.left == 3)


async def test_a_server_that_is_gone_is_a_fault() -> None:
    script = ScriptedOpenAI()
    async with listening(script):
        gate = VllmGate(RemoteServer(script.url), None)
        await gate.start()
        assert await gate.healthy()
    found = await scores(gate, ["good"])
    assert isinstance(found[0], EngineFault)
    assert not await gate.healthy()
    with pytest.raises(EngineFault, match="does not answer"):
        await gate.start()


async def test_in_turns_one_model_sleeps_while_the_other_works() -> None:
    one, two = ScriptedOpenAI(), ScriptedOpenAI()
    async with listening(one), listening(two):
        gate, feedback = VllmGate(RemoteServer(one.url), None), VllmFeedback(RemoteServer(two.url), None, 9)
        swap = AsleepInTurns(gate, feedback)
        for stage in (Stage.GATE, Stage.FEEDBACK, Stage.GATE, Stage.FEEDBACK):
            await swap.load(stage)
        assert one.commands == ["/sleep?level=1", "/wake_up", "/sleep?level=1"]
        assert two.commands == ["/sleep?level=1", "/wake_up"]
        await gate.stop()
        await feedback.stop()


async def test_several_pairs_of_servers_serve_one_request_and_one_may_die() -> None:
    scripts = [ScriptedOpenAI() for _ in range(4)]
    async with contextlib.AsyncExitStack() as stack:
        for script in scripts:
            await stack.enter_async_context(listening(script))
        urls = {"gate_urls": [s.url for s in scripts[:2]], "feedback_urls": [s.url for s in scripts[2:]]}
        pairs = make_pairs(load_settings(evaluator={"engine": "vllm", "toolchain": "4.15.0"}, vllm=urls))
        async with serve(pairs, chunk=2) as served:
            await served.until_ready()
            await until(lambda: all(all(pair.up.values()) for pair in pairs))
            scripts[0].answer = lambda body: malformed("refused")
            lines = await served.evaluate([f"{kind} {n}" for n in range(6) for kind in ("good", "bad")])
            reasons = sorted(line.reason for line in lines)
            assert reasons == [Reason.GATE_REJECTED] * 6 + [Reason.OK] * 6


@pytest.mark.parametrize(
    ("vllm", "evaluator", "said"),
    [
        ({"gate_urls": ["http://a"]}, {}, "as many"),
        ({"gate_urls": ["http://a"], "feedback_urls": ["http://a/"]}, {}, "servers of their own"),
        ({}, {}, "evaluator.gate"),
        ({}, {"gate": "g"}, "evaluator.feedback"),
        ({"gate_memory": 0.8}, {"gate": "g", "feedback": "f"}, "whole GPU"),
        ({"gate_arguments": ["--speculative-config={}"]}, {"gate": "g", "feedback": "f"}, "must not speculate"),
    ],
)
def test_settings_that_cannot_work_are_refused(vllm: dict[str, Any], evaluator: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        make_pairs(load_settings(evaluator={"engine": "vllm", **evaluator}, vllm=vllm))


def test_each_gpu_has_a_pair_and_its_layout_decides_how_it_swaps() -> None:
    models = {"engine": "vllm", "gate": "g", "feedback": "f"}
    for layout, swap in (("split", type(None)), ("sleep", AsleepInTurns), ("restart", InTurns)):
        pairs = make_pairs(load_settings(evaluator=models, vllm={"layout": layout, "gpus": ["0", "1"]}))
        assert [type(pair.swap) for pair in pairs] == [swap, swap]
