"""The process of `lean-reward lean-worker`: settings, event loop, queue client, signals, exit status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable

from redis.asyncio import Redis

from lean_worker.cores import available_cores
from lean_worker.engines.base import Engine, EngineUnavailable
from lean_worker.monitor import serve
from lean_worker.worker import Worker
from services.queue import JobQueue, connect
from services.runtime.logging import configure_logging, get_logger
from services.runtime.settings import Settings, SettingsError
from services.runtime.tracing import configure_tracing, end_tracing

CANNOT_RUN = 2

EngineFactory = Callable[[Settings], Engine]


def main(settings: Settings, make_engine: EngineFactory) -> int:
    """Run one worker until SIGTERM or SIGINT has drained it; a second signal ends it at once.

    Returns the exit status: 0 drained, 2 it cannot run at all (the log says why).
    """
    configure_logging(settings.log, service="lean-worker")
    try:
        configure_tracing(settings.tracing, "lean-worker")
    except SettingsError as error:
        print(f"lean-worker: {error}", file=sys.stderr)
        return CANNOT_RUN
    url = settings.queue.url.get_secret_value() if settings.queue.url is not None else ""
    if not url:
        print("lean-worker: no queue: set LEAN_REWARD_QUEUE_URL, or pass --queue", file=sys.stderr)
        return CANNOT_RUN
    try:
        redis = connect(url)
        engines = [make_engine(settings) for _ in range(settings.worker.count or available_cores())]
    except ValueError as error:
        print(f"lean-worker: the queue's URL cannot be used: {error}", file=sys.stderr)
        return CANNOT_RUN
    except EngineUnavailable as error:
        print(f"lean-worker: {error}", file=sys.stderr)
        return CANNOT_RUN
    try:
        return _loop_runner()(_run(settings, redis, engines))
    finally:
        end_tracing()


async def _run(settings: Settings, redis: Redis, engines: list[Engine]) -> int:
    log = get_logger()
    name = settings.worker.name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    queue = JobQueue(
        redis,
        prefix=settings.queue.prefix,
        lease_s=settings.queue.lease_s,
        keep_s=settings.queue.keep_s,
        max_depth=settings.queue.max_depth,
    )
    worker = Worker(
        name,
        queue,
        engines,
        headers=settings.worker.headers,
        claim_ahead=settings.worker.claim_ahead,
        lease_s=settings.queue.lease_s,
        drain_s=settings.worker.drain_s,
    )
    drains: list[asyncio.Task[None]] = []

    def on_signal(number: int) -> None:
        if drains:
            os._exit(128 + number)  # engines die with us
        drains.append(asyncio.create_task(worker.drain()))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    log.info("worker_starts", worker=name, engines=len(engines), engine=settings.worker.engine)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(redis.aclose)
        if settings.worker.port:
            try:
                await stack.enter_async_context(serve(worker, settings.worker.host, settings.worker.port))
            except OSError as error:
                log.error("monitor_cannot_listen", port=settings.worker.port, error=str(error))
                return CANNOT_RUN
        await worker.run()
    log.info("worker_ended", worker=name)
    return 0


def _loop_runner() -> Callable[..., int]:
    """`asyncio.run` on uvloop, which needs about half the CPU for each message of the queue, where it exists."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run
    return uvloop.run
