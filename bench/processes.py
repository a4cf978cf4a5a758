"""The platform as separate processes for a measurement, and what each of them uses."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from bench.null_lean.folder import lay_out
from services.queue.server import EmbeddedServer

_LEAN_REWARD = (sys.executable, "-m", "services.runtime.cli")
_PATIENCE_S = 120.0
LEANS = ("null", "instant", "embedded")


@dataclass(frozen=True, slots=True)
class Use:
    """Processor seconds since its start, and resident bytes now, of one part with everything below it."""

    cpu_s: float
    rss: int


@dataclass(frozen=True, slots=True)
class Platform:
    """A running gateway at `url` and its queue; `parts` names the processes."""

    url: str
    parts: Mapping[str, tuple[int, ...]]
    queue_url: str

    def use(self) -> dict[str, Use]:
        """What each part has used so far. What below it has ended counts no more."""
        return {name: _use(pids) for name, pids in self.parts.items()}

    def cpu_ms(self, before: Mapping[str, Use], count: int) -> dict[str, float]:
        """Processor milliseconds for each of `count` things since `before`, by part and in all."""
        spent = {name: (use.cpu_s - before[name].cpu_s) / count * 1e3 for name, use in self.use().items()}
        return {name: round(ms, 3) for name, ms in {**spent, "all": sum(spent.values())}.items()}

    def rss_mb(self) -> dict[str, float]:
        return {name: round(use.rss / 1e6, 1) for name, use in self.use().items()}


def _use(pids: tuple[int, ...]) -> Use:
    cpu_s, rss = 0.0, 0
    for pid in pids:
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                cpu_s += times.user + times.system
                rss += process.memory_info().rss
    return Use(cpu_s, rss)


@contextlib.contextmanager
def running(
    lean: str, *, workers: int = 2, engines: int = 1, delay_s: float = 0.0, evaluator: bool = False, **environment: str
) -> Iterator[Platform]:
    """A queue, a gateway, `workers` worker processes of `engines` each, and the demonstration evaluator if asked.

    `lean`: `null` (the native engine over the null Lean, each command taking `delay_s`), `instant` (an engine that
    answers at once, without a Lean process) or `embedded` (the real one).
    """
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(EmbeddedServer())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        port = free_port()
        variables = {
            **os.environ,
            "LEAN_REWARD_QUEUE_URL": server.url,
            "LEAN_REWARD_GATEWAY_PORT": str(port),
            "LEAN_REWARD_QUEUE_CACHE_S": "0",
            "LEAN_REWARD_WORKER_COUNT": str(engines),
            "LEAN_REWARD_LOG_LEVEL": "warning",
            **environment,
        }
        worker = [*_LEAN_REWARD, "lean-worker"]
        if lean == "null":
            lake = lay_out(folder / "null", delay_s)
            variables |= {
                "LEAN_REWARD_WORKER_ENGINE": "repl",
                "LEAN_REWARD_REPL_FOLDER": str(folder / "null"),
                "LEAN_REWARD_REPL_LAKE": str(lake),
                "LEAN_REWARD_REPL_TIER": "fast",
                "LEAN_REWARD_REPL_SANDBOX": "off",
                "LEAN_REWARD_REPL_MAX_CHECKS": "1000000",
            }
        elif lean == "instant":
            worker = [sys.executable, "-m", "bench.instant"]
            variables |= {"INSTANT_S": str(delay_s)}
        parts: dict[str, tuple[int, ...]] = {"queue": (server.pid,)}
        if evaluator:
            evaluator_port = free_port()
            variables |= {
                "LEAN_REWARD_EVALUATOR_PORT": str(evaluator_port),
                "LEAN_REWARD_GATEWAY_EVALUATOR_URLS": f"http://127.0.0.1:{evaluator_port}",
            }
            parts["evaluator"] = (_start(stack, [*_LEAN_REWARD, "evaluator"], variables),)
            until_ready(f"http://127.0.0.1:{evaluator_port}")
        parts["gateway"] = (_start(stack, [*_LEAN_REWARD, "gateway"], variables),)
        parts["workers"] = tuple(_start(stack, worker, variables) for _ in range(workers))
        url = f"http://127.0.0.1:{port}"
        until_ready(url, engines=workers * engines)
        yield Platform(url, parts, server.url)


def _start(stack: contextlib.ExitStack, command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)

    def end() -> None:
        process.terminate()
        process.wait()

    stack.callback(end)
    return process.pid


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_ready(url: str, engines: int = 0) -> None:
    """Wait for a server that answers `/readyz`, a gateway's with so many warm engines. Raises RuntimeError."""
    ends = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends:
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(f"{url}/readyz", timeout=5)
            if answer.status_code == 200 and (not engines or answer.json()["lean"]["ready"] >= engines):
                return
        time.sleep(0.1)
    raise RuntimeError(f"{url} is not ready")
