"""`lean-reward up`: the whole platform on this machine, as the processes that would run on many.

It starts a Redis-compatible server where no queue URL is set, one gateway, one Lean worker process and, on request, an
evaluator, waits until the gateway says that it can score, and stops all of them in an order that loses nothing: the
gateway drains first, then what it calls, then the queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx
import typer

from services.runtime.settings import Settings, SettingsError, load_settings

app = typer.Typer()

_STOP_MARGIN_S = 15.0  # beyond the time that a service gives itself to drain; then it is killed
_HURRY_S = 6.0  # likewise, after a second signal
_RESTARTS = 5  # a child that dies more often than this within the window ends `up`
_RESTART_WINDOW_S = 60.0
_POLL_READY_S = 0.05


class UpError(Exception):
    """The platform could not be started or kept running; the message says which process and why."""


@app.command("up", context_settings={"ignore_unknown_options": True})
def up(
    command: list[str] = typer.Argument(
        None, help="Run this once everything is ready, then stop; its exit status is `up`'s. Put it after `--`."
    ),
    workers: int = typer.Option(None, "--workers", min=1, help="Lean engines; default: one a core."),
    port: int = typer.Option(None, "--port", min=0, max=65535, help="Port of the gateway; 0 picks a free one."),
    evaluator: bool = typer.Option(
        False, "--evaluator", help="Also start an evaluator (setting evaluator.engine), so that batches are hybrid."
    ),
    ready_s: float = typer.Option(180.0, "--ready-timeout", help="Give up when not ready after this, seconds."),
) -> None:
    """Start everything on this machine: queue, gateway and Lean workers.

    Ctrl-C (or SIGTERM) stops it cleanly: running batches may go on for the setting gateway.drain_s. A second one stops
    it at once.
    """
    try:
        settings = load_settings()
        status = asyncio.run(_run(settings, command or [], workers, port, evaluator, ready_s))
    except (SettingsError, UpError) as error:
        typer.echo(f"lean-reward up: {error}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(status)


async def _run(
    settings: Settings, command: Sequence[str], workers: int | None, port: int | None, evaluator: bool, ready_s: float
) -> int:
    started = time.monotonic()
    with _queue_url(settings) as queue_url:
        chosen = settings.gateway.port if port is None else port
        environment = {
            **os.environ,
            "LEAN_REWARD_QUEUE_URL": queue_url,
            "LEAN_REWARD_GATEWAY_PORT": str(chosen or _free_port(settings.gateway.host)),
        }
        if workers is not None:
            environment["LEAN_REWARD_WORKER_COUNT"] = str(workers)
        url = f"http://{_reachable(settings.gateway.host)}:{environment['LEAN_REWARD_GATEWAY_PORT']}"
        services = ["gateway", "lean-worker"]
        if evaluator:
            services.insert(1, "evaluator")
            evaluator_port = settings.evaluator.port if port is None else _free_port(settings.evaluator.host)
            environment["LEAN_REWARD_EVALUATOR_PORT"] = str(evaluator_port)
            environment["LEAN_REWARD_GATEWAY_EVALUATOR_URLS"] = (
                f"http://{_reachable(settings.evaluator.host)}:{evaluator_port}"
            )
        drains = {
            "gateway": settings.gateway.drain_s,
            "evaluator": settings.evaluator.drain_s,
            "lean-worker": settings.worker.drain_s,
        }
        children = [_Child(service, environment, drains[service]) for service in services]
        stop, hurry = _stop_signals(settings.gateway.drain_s)
        try:
            for child in children:
                await child.start()
            keepers = [asyncio.create_task(child.keep()) for child in children]
            await _until_ready(url, keepers, stop, ready_s)
            if stop.is_set():
                return 0
            typer.echo(f"lean-reward is ready at {url} after {time.monotonic() - started:.1f} s ({url}/docs)", err=True)
            if command:
                return await _run_command(command, {**environment, "LEAN_REWARD_CLIENT_URL": url}, keepers, stop)
            await _first(keepers, stop)
            return 0
        finally:
            for child in children:
                await child.stop(hurry)


@contextlib.contextmanager
def _queue_url(settings: Settings) -> Iterator[str]:
    if settings.queue.url is not None:
        yield settings.queue.url.get_secret_value()
        return
    from services.queue.server import EmbeddedServer

    with EmbeddedServer() as server:
        yield server.url


@dataclass
class _Child:
    """One service as a child process, restarted when it dies by itself."""

    name: str
    environment: Mapping[str, str]
    drain_s: float
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.runtime.cli",
            self.name,
            env=dict(self.environment),
            stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=_die_with_parent,
            start_new_session=True,  # Ctrl-C reaches `up` alone, which stops the children in order
        )

    async def keep(self) -> None:
        """Restart the process whenever it dies. Raises `UpError` when it dies too often."""
        deaths: list[float] = []
        while True:
            if self.process is None:
                raise UpError(f"{self.name} was never started")
            status = await self.process.wait()
            if self.stopping:
                return
            now = time.monotonic()
            deaths = [*(d for d in deaths if now - d < _RESTART_WINDOW_S), now]
            if status == 2 or len(deaths) > _RESTARTS:  # 2: it said itself that it cannot run
                raise UpError(f"{self.name} ended with status {status}; its log above says why")
            typer.echo(f"lean-reward up: {self.name} ended with status {status}, starting it again", err=True)
            await self.start()

    async def stop(self, hurry: asyncio.Event) -> None:
        """Let it drain, or end it at once when `hurry` is set; what does not end in time is killed."""
        self.stopping = True
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        hurried = asyncio.create_task(hurry.wait())
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({ended, hurried}, timeout=self.drain_s + _STOP_MARGIN_S, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done() and hurry.is_set():
            process.terminate()  # the second signal: it drains no longer
            await asyncio.wait({ended}, timeout=_HURRY_S)
        hurried.cancel()
        if not ended.done():
            typer.echo(f"lean-reward up: {self.name} did not stop in time and was killed", err=True)
            process.kill()
        await ended


async def _until_ready(url: str, keepers: Sequence[asyncio.Task[None]], stop: asyncio.Event, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    said = "the gateway does not answer"
    async with httpx.AsyncClient(timeout=5.0) as client:
        while not stop.is_set():
            for keeper in keepers:
                if keeper.done():
                    keeper.result()
            with contextlib.suppress(httpx.TransportError):
                answer = await client.get(f"{url}/readyz")
                if answer.status_code == 200:
                    return
                said = answer.text
            if time.monotonic() > deadline:
                raise UpError(f"not ready after {limit_s:.0f} s: {said}")
            await asyncio.sleep(_POLL_READY_S)


async def _first(keepers: Sequence[asyncio.Task[None]], stop: asyncio.Event) -> None:
    """Wait for a stop signal. Raises `UpError` when a child cannot be kept running before it."""
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([*keepers, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    for keeper in keepers:
        if keeper.done():
            keeper.result()


async def _run_command(
    command: Sequence[str], environment: Mapping[str, str], keepers: Sequence[asyncio.Task[None]], stop: asyncio.Event
) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    except OSError as error:
        raise UpError(f"cannot run {command[0]!r}: {error.strerror}") from None
    ended = asyncio.create_task(process.wait())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([ended, stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.terminate()
    stopped.cancel()
    status = await ended
    for keeper in keepers:
        if keeper.done():
            keeper.result()
    return status if status >= 0 else 128 - status


def _stop_signals(drain_s: float) -> tuple[asyncio.Event, asyncio.Event]:
    """Set by the first and by the second signal to stop."""
    stop, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            hurry.set()
            return
        stop.set()
        typer.echo(
            f"lean-reward up: stopping; running batches may go on for {drain_s:g} s "
            "(LEAN_REWARD_GATEWAY_DRAIN_S), a second signal stops at once",
            err=True,
        )

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stop, hurry


def _die_with_parent() -> None:
    """In the child, before exec: have the kernel send SIGTERM when `up` dies, however it dies (Linux only)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _reachable(host: str) -> str:
    """The address at which this machine reaches a server that listens on `host`."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
