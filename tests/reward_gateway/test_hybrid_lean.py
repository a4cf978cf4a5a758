"""The demonstration set with real parts: the embedded Lean, the linear evaluator as a process, real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.contracts.outcomes import LeanStatus, Source, Verdict
from services.contracts.proofs import CandidateResult, ScoreResponse
from tests.reward_gateway.place import Place

pytestmark = [pytest.mark.lean, pytest.mark.slow]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def process(*command: str, **environment: str) -> AsyncIterator[None]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.runtime.cli", *command, env={**os.environ, **environment}
    )
    try:
        yield
    finally:
        if child.returncode is None:
            child.terminate()
        await asyncio.wait_for(child.wait(), 30)


def demonstration(root: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (root / "examples" / "proofs.jsonl").read_text(encoding="utf-8").splitlines()]
    fields = ("id", "group", "code", "response", "statement", "header")
    return [{name: row[name] for name in fields if name in row} for row in rows]


def check_provenance(result: CandidateResult, exact: CandidateResult) -> None:
    """Whoever decided had said so in time, and what Lean decided is what it says without a cutoff."""
    if result.source is Source.PRECHECK:
        assert (result.verdict, result.lean.status) == (Verdict.INVALID, LeanStatus.SKIPPED)
        assert result.evaluator is None
    elif result.source is Source.LEAN:
        assert result.lean.status is LeanStatus.OK
        assert (result.verdict, result.reason) == (exact.verdict, exact.reason)
    elif result.source is Source.CASCADE:
        assert result.lean.status in (LeanStatus.CANCELLED, LeanStatus.TIMEOUT)
        assert result.evaluator is not None
        assert result.evaluator.model == "linear-demo"
        accepted = result.evaluator.feedback is Verdict.VALID
        assert result.verdict is (Verdict.VALID if accepted else Verdict.INVALID)
    else:
        assert result.verdict is Verdict.UNKNOWN
        assert result.reward is None
    if exact.source is Source.PRECHECK:
        assert result.source is Source.PRECHECK


async def test_at_a_third_of_leans_time_everybody_is_told_who_decided(place: Place, root: Path) -> None:
    port = free_port()
    batch = demonstration(root)
    environment = {"LEAN_REWARD_QUEUE_URL": place.url, "LEAN_REWARD_QUEUE_PREFIX": place.prefix}
    async with (
        process("lean-worker", **environment, LEAN_REWARD_WORKER_COUNT="1"),
        process("evaluator", "--engine", "linear", "--port", str(port)),
    ):
        settings = place.settings(evaluator_urls=f"http://127.0.0.1:{port}")
        uncached = settings.model_copy(update={"queue": settings.queue.model_copy(update={"cache_s": 0.0})})
        place.settings = lambda **_: uncached  # type: ignore[method-assign]
        gateway = await place.http()
        gateway.client.timeout = httpx.Timeout(330)  # all of Lean's time, on a machine with other work too
        await ready(gateway.client)
        began = time.monotonic()
        exact = await gateway.score(batch, mode="lean", cutoff={"policy": "all", "deadline_s": 300}, lean_timeout_s=2.5)
        whole_s = time.monotonic() - began
        assert exact.status_code == 200, exact.text
        cutoff = {"policy": "deadline", "deadline_s": whole_s / 3}
        hybrid = await gateway.score(batch, cutoff=cutoff, lean_timeout_s=2.5)
        assert hybrid.status_code == 200, hybrid.text
    answer = ScoreResponse.model_validate_json(hybrid.content)
    exactly = ScoreResponse.model_validate_json(exact.content)
    assert answer.cutoff.at_s <= whole_s / 3 + 1e-6  # it is told in whole microseconds
    assert answer.stats.elapsed_s - answer.cutoff.at_s < 5.0  # 0.25 s is the target; this machine may be loaded
    for result, other in zip(answer.results, exactly.results, strict=True):
        check_provenance(result, other)
    sources = {result.source for result in answer.results}
    assert {Source.PRECHECK, Source.LEAN, Source.CASCADE} <= sources
    assert 0 < answer.stats.lean_share < exactly.stats.lean_share


async def ready(client: httpx.AsyncClient) -> None:
    """Wait for a warm engine and for the evaluator."""
    said = ""
    for _ in range(600):
        answer = await client.get("/readyz")
        said = answer.text
        if answer.status_code == 200 and answer.json()["evaluator"]["ready"] == 1:
            return
        await asyncio.sleep(0.2)
    raise AssertionError(said)
