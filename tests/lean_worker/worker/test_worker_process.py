"""The worker's process: signals, exit status, its own HTTP port; and the real command with real Lean."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import psutil
import pytest

from lean_worker.monitor import serve
from services.contracts.lean import CheckTask, LeanJob, WorkerInfo
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue import Submission
from tests.lean_worker.scripted import ScriptedEngine
from tests.lean_worker.worker.conftest import Desk, until, working

ROOT = Path(__file__).resolve().parents[3]
SCRIPTED = textwrap.dedent(
    """
    import sys
    from lean_worker.process import main
    from services.runtime.settings import load_settings
    from tests.lean_worker.scripted import ScriptedEngine
    sys.exit(main(load_settings(), lambda settings: ScriptedEngine()))
    """
)
COMMAND = "from lean_worker.commands import app; app()"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def process(program: str, *arguments: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


def here(desk: Desk) -> dict[str, str]:
    return {"LEAN_REWARD_QUEUE_URL": desk.url, "LEAN_REWARD_QUEUE_PREFIX": desk.prefix}


async def asked(question: Callable[[], Awaitable[object]], within_s: float = 20.0) -> None:
    """Ask the queue until it says yes."""
    ends = time.monotonic() + within_s
    for _ in range(round(within_s / 0.02)):
        if await question():
            return
        assert time.monotonic() < ends, "it did not happen in time"
        await asyncio.sleep(0.02)


async def announced(desk: Desk, within_s: float = 20.0) -> None:
    await asked(desk.queue.workers, within_s)


async def running(desk: Desk) -> None:
    async def any_lease() -> bool:
        return (await desk.queue.stats()).running > 0

    await asked(any_lease)


async def test_sigterm_ends_an_idle_worker_within_three_seconds(desk: Desk) -> None:
    async with process(SCRIPTED, LEAN_REWARD_WORKER_COUNT="2", **here(desk)) as child:
        await announced(desk)
        begin = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), 10) == 0
        assert time.monotonic() - begin < 3
    assert await desk.queue.workers() == {}


async def test_sigterm_gives_a_long_check_back(desk: Desk) -> None:
    async with process(SCRIPTED, LEAN_REWARD_WORKER_COUNT="1", LEAN_REWARD_WORKER_DRAIN_S="0.1", **here(desk)) as child:
        await announced(desk)
        await desk.submit("slow:60")
        await running(desk)
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), 10) == 0
    stats = await desk.queue.stats()
    assert (stats.depth, stats.running) == (1, 0)


async def test_a_second_signal_ends_it_at_once(desk: Desk) -> None:
    async with process(SCRIPTED, LEAN_REWARD_WORKER_COUNT="1", LEAN_REWARD_WORKER_DRAIN_S="60", **here(desk)) as child:
        await announced(desk)
        await desk.submit("slow:60")
        await running(desk)
        child.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        assert child.returncode is None
        child.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(child.wait(), 2) == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LEAN_REWARD_QUEUE_URL": ""}, "queue"),
        ({"LEAN_REWARD_QUEUE_URL": "unix:///nowhere", "LEAN_REWARD_LEAN_HOME": "/nowhere"}, "lean install"),
        ({"LEAN_REWARD_QUEUE_URL": "unix:///nowhere", "LEAN_REWARD_WORKER_COUNT": "none"}, "worker.count"),
        ({"LEAN_REWARD_QUEUE_URL": "http://elsewhere"}, "redis://"),
        ({"LEAN_REWARD_QUEUE_URL": "unix:///nowhere", "LEAN_REWARD_WORKER_ENGINE": "repl"}, "LEAN_REWARD_REPL_FOLDER"),
    ],
)
async def test_a_worker_that_cannot_run_says_why_and_ends_with_2(environment: dict[str, str], said: str) -> None:
    async with process(COMMAND, "lean-worker", **environment) as child:
        _, errors = await asyncio.wait_for(child.communicate(), 20)
        assert child.returncode == 2
        assert said in errors.decode()
        assert "Traceback" not in errors.decode()


async def test_a_monitor_port_in_use_is_said(desk: Desk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        async with process(SCRIPTED, LEAN_REWARD_WORKER_PORT=port, **here(desk)) as child:
            _, errors = await asyncio.wait_for(child.communicate(), 20)
    assert child.returncode == 2
    assert b"monitor_cannot_listen" in errors


async def test_health_readiness_and_metrics_over_http(desk: Desk) -> None:
    engine = ScriptedEngine()
    engine.broken = True
    async with working(desk, engine, ready=0) as worker, serve(worker, "127.0.0.1", 0) as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            before = await client.get("/readyz")
            assert before.status_code == 503
            assert "no engine is ready" in before.json()["missing"]
            engine.broken = False
            await until(lambda: worker.slots[0].ready)
            await desk.submit("ok")
            await desk.outcome("ok")
            after = await client.get("/readyz")
            assert (after.status_code, after.json()) == (200, {"status": "ready", "missing": []})
            metrics = await client.get("/metrics")
            assert 'lean_reward_checks_total{reason="ok",status="ok"}' in metrics.text
            assert "lean_reward_engine_rss_bytes" in metrics.text
            assert (await client.get("/elsewhere")).status_code == 404
            assert (await client.post("/metrics")).status_code == 405
            assert (await client.head("/healthz")).content == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"no request at all\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 405")
        writer.close()


@pytest.mark.lean
@pytest.mark.slow
async def test_the_command_checks_proofs_with_real_lean_and_leaves_no_process(desk: Desk) -> None:
    statement = "theorem t (a b : Nat) : a + b = b + a"
    codes = {"right": f"{statement} := by omega", "wrong": f"{statement} := by rfl"}
    codes["exits"] = f"#eval (IO.Process.exit 0 : IO Unit)\n{statement} := by omega"
    # The kernel does not look at the heartbeat counter: only the end of its process stops this one.
    codes["endless"] = "theorem e : (List.range 30000000).foldl (· + ·) 0 = 1 := by decide +kernel"

    def submission(key: str) -> Submission:
        task = CheckTask(code=codes[key], statement=None if key == "endless" else statement)
        return Submission(key, LeanJob(key=key, task=task).model_dump_json().encode(), 0, 60.0)

    async with process(COMMAND, "lean-worker", "--workers", "1", **here(desk)) as child:
        await announced(desk, 120)
        await desk.queue.submit("batch", [submission(key) for key in ("exits", "right", "wrong")], home="desk")
        exits = await desk.outcome("exits", 60)
        assert (exits.verdict, exits.reason) == (Verdict.INVALID, Reason.RESOURCE_EXHAUSTED)
        right, wrong = await desk.outcome("right", 30), await desk.outcome("wrong", 30)
        assert (right.status, right.verdict) == (LeanStatus.OK, Verdict.VALID)
        assert (wrong.verdict, wrong.reason) == (Verdict.INVALID, Reason.COMPILE_ERROR)
        assert right.identity is not None
        assert right.identity.engine == "embedded"

        await desk.queue.submit("endless", [submission("endless")], home="desk")
        await running(desk)
        await asyncio.sleep(1.0)
        (host,) = psutil.Process(child.pid).children()
        begin = time.monotonic()
        await desk.queue.unsubscribe("endless")
        await asyncio.to_thread(psutil.wait_procs, [host], 5)
        assert time.monotonic() - begin < 1.0
        codes["after"] = f"{statement} := by\n  omega"
        await desk.queue.submit("batch", [submission("after")], home="desk")
        assert (await desk.outcome("after", 30)).verdict is Verdict.VALID

        hosts = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        assert await asyncio.wait_for(child.wait(), 10) == 0
        assert time.monotonic() - begin < 3
        _, alive = psutil.wait_procs(hosts, timeout=2)
        assert alive == []
    assert "endless" not in desk.outcomes


@pytest.mark.lean
@pytest.mark.slow
async def test_a_real_lean_that_is_killed_while_idle_is_replaced_before_a_job_comes(desk: Desk) -> None:
    async def told() -> WorkerInfo:
        (info,) = (await desk.queue.workers()).values()
        return WorkerInfo.model_validate_json(info)

    async def down() -> bool:
        return (await told()).ready == 0

    async def up() -> bool:
        return (await told()).ready == 1

    statement = "theorem t : 1 + 1 = 2"
    async with process(COMMAND, "lean-worker", "--workers", "1", **here(desk)) as child:
        await announced(desk, 120)
        for killed in (1, 2):
            (host,) = psutil.Process(child.pid).children()
            host.kill()
            await asked(down)
            await asked(up, 60)
            assert (await told()).restarts == killed
        job = LeanJob(key="t", task=CheckTask(code=f"{statement} := rfl", statement=statement))
        await desk.queue.submit("batch", [Submission("t", job.model_dump_json().encode(), 0, 60.0)], home="desk")
        assert (await desk.outcome("t", 30)).verdict is Verdict.VALID
