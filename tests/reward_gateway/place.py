"""A gateway on a real Redis-protocol server, with a worker that answers at once or as a test tells it to."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn

from reward_gateway.app import create_app
from reward_gateway.gateway import Gateway
from reward_gateway.server import make_config
from services.contracts.lean import CheckTask, EngineIdentity, LeanJob, LeanOutcome, WorkerInfo
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue import Claim, Completion, JobQueue, QueueUnavailable, connect
from services.runtime.settings import Settings, load_settings

IDENTITY = EngineIdentity(engine="instant", toolchain="none", environment="none")

Judge = Callable[[CheckTask], LeanOutcome | None]


def valid(task: CheckTask) -> LeanOutcome:
    return LeanOutcome(
        status=LeanStatus.OK, verdict=Verdict.VALID, reason=Reason.OK, elapsed_s=0.001, identity=IDENTITY
    )


def by_name(task: CheckTask) -> LeanOutcome | None:
    """Judge by the name in the code: `wrong_`, `slow_` (no answer), `timeout_`; everything else is valid."""
    if "slow_" in task.code:
        return None
    if "timeout_" in task.code:
        return LeanOutcome(status=LeanStatus.TIMEOUT, verdict=Verdict.UNKNOWN, reason=Reason.LEAN_TIMEOUT)
    if "wrong_" in task.code:
        return LeanOutcome(
            status=LeanStatus.OK,
            verdict=Verdict.INVALID,
            reason=Reason.COMPILE_ERROR,
            detail="type mismatch",
            elapsed_s=0.001,
            identity=IDENTITY,
        )
    return valid(task)


@dataclass
class InstantWorker:
    """No Lean: a real queue client that claims jobs and completes them at once by `judge` (None: it holds them)."""

    queue: JobQueue
    judge: Judge = by_name
    checked: list[CheckTask] = field(default_factory=list)
    held: dict[str, Claim] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    name: str = field(default_factory=lambda: secrets.token_hex(4))
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, ready: int = 2) -> None:
        info = WorkerInfo(worker=self.name, identity=IDENTITY, engines=2, ready=ready)
        await self.queue.announce(self.name, info.model_dump_json().encode(), 60)
        self.tasks = [asyncio.create_task(loop) for loop in (self._work(), self._listen(), self._beat())]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.queue.announce(self.name, b"", 0)

    async def _work(self) -> None:
        while True:
            try:
                claims = await self.queue.claim(self.name, 128, 1.0)
            except QueueUnavailable:  # a loaded machine can keep this process, too, from reading an answer in time
                continue
            done = []
            for claim in claims:
                task = LeanJob.model_validate_json(claim.payload).task
                self.checked.append(task)
                outcome = self.judge(task)
                if outcome is None:
                    self.held[claim.token] = claim
                else:
                    done.append(Completion(claim, outcome.model_dump_json().encode()))
            await self.queue.complete(done)

    async def _listen(self) -> None:
        async for tokens in self.queue.cancellations(self.name):
            for token in tokens:
                self.cancelled.append(token)
                self.held.pop(token, None)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            if self.held:
                await self.queue.heartbeat(self.name, list(self.held.values()))

    async def finish_held(self, outcome: LeanOutcome) -> None:
        """Complete everything that is held."""
        held = list(self.held.values())
        self.held.clear()
        await self.queue.complete([Completion(claim, outcome.model_dump_json().encode()) for claim in held])


@dataclass
class Place:
    """One test's own prefix on the server, and what it starts there."""

    url: str
    prefix: str
    stack: contextlib.AsyncExitStack

    def settings(self, **gateway: Any) -> Settings:
        return load_settings(
            queue={"url": self.url, "prefix": self.prefix},
            gateway={"port": 0, "deadline_s": 20.0, "audit_share": 0.0, **gateway},
        )

    async def queue(self) -> JobQueue:
        redis = connect(self.url)
        self.stack.push_async_callback(redis.aclose)
        return JobQueue(redis, prefix=self.prefix)

    async def worker(self, judge: Judge = by_name, ready: int = 2) -> InstantWorker:
        worker = InstantWorker(await self.queue(), judge)
        await worker.start(ready)
        self.stack.push_async_callback(worker.stop)
        return worker

    async def gateway(self, **settings: Any) -> Served:
        """A gateway without a socket: requests go straight into the application."""
        app = create_app(self.settings(**settings))
        gateway: Gateway = app.state.gateway
        await gateway.start()
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway", timeout=30)
        served = Served(client, gateway)
        self.stack.push_async_callback(served.stop)
        return served

    async def http(self, **settings: Any) -> Served:
        """A gateway behind uvicorn on a loopback port."""
        chosen = self.settings(**settings)
        app = create_app(chosen)
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = uvicorn.Server(make_config(app, chosen))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)
        served = Served(client, app.state.gateway, server, task)
        self.stack.push_async_callback(served.stop)
        return served


@dataclass
class Served:
    """A running gateway and a client of it."""

    client: httpx.AsyncClient
    gateway: Gateway
    server: uvicorn.Server | None = None
    task: asyncio.Task[None] | None = None
    stopped: bool = False

    async def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        await self.client.aclose()
        if self.server is not None and self.task is not None:
            self.server.should_exit = True
            await self.task
        else:
            await self.gateway.stop()

    async def die(self) -> None:
        """End as a killed process does: nothing is drained, handed over, cancelled or cleaned up."""

        async def leave_it(_: object) -> None: ...

        self.stopped = True
        self.gateway.batches._clean_up = leave_it  # type: ignore[method-assign]
        tasks = [*self.gateway._tasks, *(batch.task for batch in self.gateway.batches.running if batch.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.aclose()
        await self.gateway._redis.aclose()

    async def score(self, candidates: Sequence[dict[str, Any]], **options: Any) -> httpx.Response:
        return await self.client.post("/v1/proofs/score", json={"candidates": list(candidates), **options})


async def until(happened: Callable[[], object], limit_s: float = 10.0) -> None:
    """Wait until `happened` answers with something true."""
    for _ in range(int(limit_s / 0.01)):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not happen within {limit_s} s")


def theorem(name: str) -> str:
    return f"theorem {name} : 1 + 1 = 2 := rfl"


def candidates(*names: str) -> list[dict[str, Any]]:
    return [{"id": f"c{i}", "code": theorem(name)} for i, name in enumerate(names)]


def told(answer: dict[str, Any]) -> dict[str, tuple[str, str, str, str, float | None]]:
    """Of each candidate of an answer: verdict, source, reason, Lean's status, reward."""
    return {
        r["id"]: (r["verdict"], r["source"], r["reason"], r["lean"]["status"], r["reward"]) for r in answer["results"]
    }
