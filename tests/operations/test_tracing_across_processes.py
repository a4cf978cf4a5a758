"""One trace a batch: gateway, worker and evaluator as processes of their own, and a collector that listens."""

from __future__ import annotations

import time

import httpx
import pytest

from bench.processes import running
from tests.services.runtime.collector import Collector, attributes

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.slow
def test_a_batch_is_one_trace_across_its_processes() -> None:
    collector = Collector()
    code = "theorem t : 1 + 1 = 2 := rfl"
    with running("instant", workers=1, evaluator=True, LEAN_REWARD_TRACING_ENDPOINT=collector.url) as platform:
        answer = httpx.post(
            f"{platform.url}/v1/proofs/score",
            json={"candidates": [{"id": "a", "code": code}], "mode": "hybrid"},
            headers={"traceparent": f"00-{TRACE}-{CALLER}-01"},
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
    ends = time.monotonic() + 30
    while not {"check", "batch"} <= {one.name for _, one in collector.spans} and time.monotonic() < ends:
        time.sleep(0.1)
    collector.close()
    services = {(service.removeprefix("lean-reward-"), one.name) for service, one in collector.spans}
    assert services >= {
        ("gateway", "request"),
        ("gateway", "batch"),
        ("gateway", "wait"),
        ("gateway", "merge"),
        ("lean-worker", "check"),
        ("evaluator", "request"),
    }
    assert {one.trace_id.hex() for _, one in collector.spans} == {TRACE}
    (batch,), (check,) = collector.named("batch"), collector.named("check")
    told = attributes(batch)
    assert (told["lean_reward.mode"], told["lean_reward.candidates"], told["lean_reward.outcome"]) == (
        "hybrid",
        1,
        "answered",
    )
    assert attributes(check)["lean_reward.reason"] == "ok"
    assert not any(code.encode() in one.SerializeToString() for _, one in collector.spans)
