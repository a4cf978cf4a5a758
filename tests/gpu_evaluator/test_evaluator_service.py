"""The evaluator over real HTTP, with the linear model or with scripted engines where a fault is needed."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import signal
import zlib
from collections import Counter

import httpx
import pytest
import zstandard

from gpu_evaluator.catalog import make_pairs
from gpu_evaluator.engines.absent import NoFeedback
from gpu_evaluator.pool import Stage
from services.contracts.base import MAX_PROGRAM_CHARACTERS
from services.contracts.evaluator import EvaluatorReadiness
from services.contracts.outcomes import Reason, Verdict
from services.contracts.problems import Problem
from services.runtime.settings import load_settings
from tests.gpu_evaluator.scripted_engines import ScriptedFeedback, ScriptedGate, make_pair
from tests.gpu_evaluator.served import serve, until

RIGHT = "theorem t (a b : Nat) : a + b = b + a := by\n  omega\n"
WRONG = "theorem t (a b : Nat) : a + b = b + a := by\n  assumption\n"


async def test_the_linear_model_predicts_and_says_that_it_is_a_demonstration() -> None:
    async with serve(make_pairs(load_settings())) as served:
        await served.until_ready()
        readiness = EvaluatorReadiness.model_validate_json((await served.client.get("/readyz")).text)
        assert readiness.gate.demonstration
        assert readiness.gate.toolchain
        assert any("demonstration" in warning for warning in readiness.warnings)
        lines = await served.evaluate([RIGHT, WRONG], trace=True, method="cascade")
        found = {line.id: line for line in lines}
        assert found["c0"].verdict is Verdict.VALID
        assert found["c0"].trace == RIGHT
        assert found["c1"].verdict is Verdict.INVALID
        assert found["c0"].gate is not None
        assert found["c1"].gate is not None
        assert found["c0"].gate > found["c1"].gate
        answer = await served.client.post("/v1/evaluate", json={"programs": [{"id": "x", "code": RIGHT}]})
        assert answer.headers["x-demonstration"] == "true"


async def test_the_linear_trace_names_the_line_and_is_labelled() -> None:
    async with serve(make_pairs(load_settings()), threshold=0.0) as served:
        await served.until_ready()
        (line,) = await served.evaluate([WRONG], trace=True)
        assert line.reason is Reason.FEEDBACK_ERROR
        assert line.trace is not None
        assert "-- type: error, msg: (demonstration)" in line.trace


async def test_every_program_has_one_line_whatever_it_holds() -> None:
    codes = [
        RIGHT,
        "",
        "\x00",
        "⊢" * 1000,
        "x" * (MAX_PROGRAM_CHARACTERS + 1),
        RIGHT,
        "\n" * 5000,
        "<feedback>" * 9,
        "\ud800",
    ]
    async with serve(make_pairs(load_settings())) as served:
        await served.until_ready()
        for method in ("gate", "cascade", "self_consistency"):
            lines = await served.evaluate(codes, method=method)
            assert Counter(line.id for line in lines) == Counter(f"c{n}" for n in range(len(codes)))
            (long,) = [line for line in lines if line.id == "c4"]
            assert long.reason is Reason.TOO_LONG


async def test_predictions_are_streamed_as_they_are_ready() -> None:
    feedback = ScriptedFeedback(delay_s=0.5)
    async with serve([make_pair(feedback=feedback)]) as served:
        await served.until_ready()
        programs = [{"id": "slow", "code": "good"}, {"id": "fast", "code": "bad"}]
        order = []
        async with served.client.stream("POST", "/v1/evaluate", json={"programs": programs, "scores": True}) as answer:
            async for line in answer.aiter_lines():
                order.append((json.loads(line)["id"], json.loads(line)["reason"]))
                if len(order) == 2:
                    assert feedback.seen == []
        assert sorted(order[:2]) == [("fast", "gate_rejected"), ("slow", "not_decided")]
        assert order[2:] == [("slow", "ok")]


async def test_at_the_deadline_the_rest_is_not_decided() -> None:
    feedback = ScriptedFeedback(delay_s=30)
    async with serve([make_pair(feedback=feedback)]) as served:
        await served.until_ready()
        lines = await served.evaluate(["good", "bad", "good too"], deadline_s=0.3)
        found = {line.id: line.reason.value for line in lines}
        assert found == {"c0": "not_decided", "c1": "gate_rejected", "c2": "not_decided"}
        assert feedback.aborted == 2


async def test_a_client_that_leaves_aborts_its_work_and_makes_room() -> None:
    feedback = ScriptedFeedback(delay_s=30)
    async with serve([make_pair(feedback=feedback)]) as served:
        await served.until_ready()
        with pytest.raises(httpx.ReadTimeout):
            await served.client.post("/v1/evaluate", json={"programs": [{"id": "a", "code": "good"}]}, timeout=0.3)
        await until(lambda: served.evaluator.in_flight == 0)
        assert feedback.aborted == 1


async def test_too_much_in_flight_is_refused_with_a_time_to_come_back() -> None:
    async with serve([make_pair(feedback=ScriptedFeedback(delay_s=1))], max_in_flight=2) as served:
        await served.until_ready()
        running = asyncio.create_task(served.evaluate(["good"] * 5))  # alone, even a larger one goes in
        await until(lambda: served.evaluator.in_flight > 0)
        answer = await served.client.post("/v1/evaluate", json={"programs": [{"id": "a", "code": "x"}]})
        problem = Problem.model_validate_json(answer.text)
        assert (answer.status_code, problem.code.value) == (429, "too_much_in_flight")
        assert int(answer.headers["retry-after"]) >= 1
        assert len(await running) == 5


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b'{"programs": ["\xff"]}', 400, "malformed_json"),
        (b"[" * 100_000, 400, "malformed_json"),
        (b"{}", 422, "invalid_request"),
        (b'{"programs": []}', 422, "invalid_request"),
        (b'{"programs": [{"id": "a", "code": "x"}, {"id": "a", "code": "y"}]}', 422, "invalid_request"),
        (b'{"programs": [{"id": "a", "code": "x"}], "method": "guess"}', 422, "invalid_request"),
        (b'{"programs": [{"id": "a", "code": "' + b"x" * 1_048_577 + b'"}]}', 413, "program_too_large"),
        (b" " * 2_000_001, 413, "body_too_large"),
    ],
)
async def test_bad_requests_get_a_precise_problem(body: bytes, status: int, code: str) -> None:
    async with serve([make_pair()], max_body_bytes=2_000_000) as served:
        await served.until_ready()
        answer = await served.client.post("/v1/evaluate", content=body, headers={"Content-Type": "application/json"})
        problem = Problem.model_validate_json(answer.text)
        assert (answer.status_code, problem.code.value) == (status, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem.instance.endswith(answer.headers["x-request-id"])


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "zstd"])
async def test_a_compressed_body_is_read(encoding: str) -> None:
    packers = {"deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}
    body = json.dumps({"programs": [{"id": "a", "code": "bad"}]}).encode()
    packed = packers.get(encoding, gzip.compress)(body)
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with serve([make_pair()]) as served:
        await served.until_ready()
        answer = await served.client.post("/v1/evaluate", content=packed, headers=headers)
        assert [json.loads(line)["id"] for line in answer.text.splitlines()] == ["a"]


@pytest.mark.parametrize(
    ("body", "encoding", "status", "code"),
    [
        (gzip.compress(b" " * 2_000_001), "gzip", 413, "body_too_large"),
        (gzip.compress(b"{}")[:-4], "gzip", 400, "malformed_body"),
        (b"{}", "zstd", 400, "malformed_body"),
        (b"{}", "br", 415, "unsupported_encoding"),
        (gzip.compress(b"{}"), "gzip, gzip", 415, "unsupported_encoding"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_refused(body: bytes, encoding: str, status: int, code: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with serve([make_pair()], max_body_bytes=2_000_000) as served:
        await served.until_ready()
        answer = await served.client.post("/v1/evaluate", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        if status == 415:
            assert answer.headers["accept-encoding"] == "gzip, deflate, zstd"


async def test_a_key_is_needed_where_one_is_set() -> None:
    digest = hashlib.sha256(b"secret").hexdigest()
    async with serve([make_pair()], keys=f"gateway:{digest}") as served:
        await served.until_ready()
        body = {"programs": [{"id": "a", "code": "bad"}]}
        assert (await served.client.post("/v1/evaluate", json=body)).status_code == 401
        with_key = {"Authorization": "Bearer secret"}
        assert (await served.client.post("/v1/evaluate", json=body, headers=with_key)).status_code == 200


async def test_without_an_engine_it_is_alive_not_ready_and_says_what_is_missing() -> None:
    pair = make_pair(gate=ScriptedGate(broken=True))
    pair.up = dict.fromkeys(Stage, False)
    async with serve([pair]) as served:
        await until(lambda: pair.up[Stage.FEEDBACK])
        assert (await served.client.get("/healthz")).status_code == 200
        readiness = await served.client.get("/readyz")
        assert readiness.status_code == 503
        assert readiness.json()["missing"] == [{"component": "evaluator", "detail": "no gate engine is up"}]
        answer = await served.client.post("/v1/evaluate", json={"programs": [{"id": "a", "code": "x"}]})
        assert (answer.status_code, answer.json()["code"]) == (503, "evaluator_unavailable")


async def test_a_dead_engine_is_started_again() -> None:
    gate = ScriptedGate(dies_after=0)
    async with serve([make_pair(gate=gate)]) as served:
        await served.until_ready()
        (line,) = await served.evaluate(["good"])
        assert line.reason is Reason.INFRASTRUCTURE
        gate.dies_after = None
        await until(lambda: gate.starts == 2)
        await served.until_ready()
        (line,) = await served.evaluate(["good"])
        assert line.reason is Reason.OK
        text = (await served.client.get("/metrics")).text
        assert 'lean_reward_evaluator_restarts_total{stage="gate"}' in text


async def test_sigterm_lets_running_requests_end_and_refuses_new_ones() -> None:
    async with serve([make_pair(feedback=ScriptedFeedback(delay_s=0.7))]) as served:
        await served.until_ready()
        running = asyncio.create_task(served.evaluate(["good"]))
        await until(lambda: served.evaluator.in_flight > 0)
        served.server.handle_exit(signal.SIGTERM, None)
        await asyncio.sleep(0.05)
        answer = await served.client.post("/v1/evaluate", json={"programs": [{"id": "a", "code": "x"}]})
        assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")
        assert (await running)[0].reason is Reason.OK


async def test_unknown_routes_and_methods_are_problems() -> None:
    async with serve([make_pair()]) as served:
        assert (await served.client.get("/nothing")).json()["code"] == "not_found"
        assert (await served.client.get("/v1/evaluate")).json()["code"] == "method_not_allowed"


async def test_an_evaluator_without_a_feedback_model_refuses_the_cascade() -> None:
    pair = make_pair()
    pair.feedback = NoFeedback()
    async with serve([pair], method="gate") as served:
        await served.until_ready()
        assert [line.reason for line in await served.evaluate(["wrong"])] == [Reason.OK]
        body = {"programs": [{"id": "a", "code": "x"}], "method": "cascade"}
        answer = await served.client.post("/v1/evaluate", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "evaluator_not_configured")
