"""The platform as an operator runs it on many machines, one real process a service, and the signals that befall it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from redis.exceptions import RedisError

ROOT = Path(__file__).resolve().parents[2]
LEASE_S = 4.0
HOST = "127.0.0.1"
PATIENCE_S = 240.0  # a loaded machine may need a minute for what takes seconds
_PR_SET_PDEATHSIG = 1


WHOLE_SUITE = [
    pytest.mark.lean,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
    pytest.mark.skipif(os.environ.get("LEAN_TEST_FAULTS") != "all", reason="`make test-faults` runs the whole suite"),
]
"""The marks of what `make test` leaves out."""


def free_port(host: str = HOST) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def until(happened: Callable[[], object], what: str) -> None:
    """Wait for it."""
    begin = time.monotonic()
    while not happened():
        assert time.monotonic() - begin < PATIENCE_S, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.05)


@dataclass
class Service:
    """One process, its log, and what can be done to it. `port`: where it answers `/metrics` and `/readyz`."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    port: int = 0
    limits: Callable[[], None] | None = None  # called in the child before it becomes the service
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._prepare,
            )

    def _prepare(self) -> None:
        """In the child: end when the tests do, however they end."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.limits is not None:
            self.limits()

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, as the kernel sends it when memory runs out."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT at the end."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self) -> None:
        """As an operator would; what does not end is killed, with its children."""
        if self.process is None or self.process.poll() is not None:
            return
        children = psutil.Process(self.pid).children(recursive=True)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()

    def ready(self) -> bool:
        try:
            return httpx.get(f"http://{HOST}:{self.port}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def count(self, metric: str, **labels: str) -> float:
        """The sum of a metric's series that have these labels; 0 where there is none."""
        text = httpx.get(f"http://{HOST}:{self.port}/metrics", timeout=5).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == metric and all(sample.labels.get(name) == value for name, value in labels.items())
        )

    def said(self, event: str) -> bool:
        return event in self.log.read_text(errors="replace")


class LeanWorker(Service):
    """A worker with one engine."""

    def busy(self) -> bool:
        return self.count("lean_reward_slots", state="busy") > 0

    def hosts(self) -> list[psutil.Process]:
        """The Node.js processes in which its Lean runs."""
        found = [child for child in psutil.Process(self.pid).children() if Path(child.exe()).name == "node"]
        assert found, f"{self.name} has no Lean"
        return found


@dataclass
class Platform:
    """Redis, gateways and workers, started by `start` and ended by `stop`. What a test changes, it changes before.

    `persist`: Redis keeps an append-only file. `redis_socket`: gateways and workers reach Redis by this Unix socket.
    `variables`: settings of every service.
    """

    folder: Path
    persist: bool = True
    workers: int = 2
    gateways: int = 1
    evaluator: bool = False
    redis_socket: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)
    redis: Service = field(init=False)
    gateway: list[Service] = field(init=False)
    worker: list[LeanWorker] = field(init=False)
    predictor: Service | None = None

    def __post_init__(self) -> None:
        (self.folder / "redis").mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.queue_url = f"unix://{self.redis_socket}" if self.redis_socket else f"redis://{HOST}:{port}/0"
        self.redis = Service("redis", self._redis_command(port), {}, self.folder / "redis.log", port)
        if self.evaluator:
            port = free_port()
            self.predictor = self._lean_reward("evaluator", {"LEAN_REWARD_EVALUATOR_PORT": str(port)}, port)
            self.variables["LEAN_REWARD_GATEWAY_EVALUATOR_URLS"] = f"http://{HOST}:{port}"
        self.gateway = [self._gateway(number) for number in range(self.gateways)]
        self.worker = [self.make_worker(f"worker-{number}") for number in range(self.workers)]

    @property
    def services(self) -> list[Service]:
        return [self.redis, *([self.predictor] if self.predictor else []), *self.gateway, *self.worker]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.gateway[0].port}"

    def start(self) -> None:
        self.start_redis()
        for service in self.services[1:]:
            service.start()
        self.wait_ready()

    def stop(self) -> None:
        for service in (*self.gateway, *self.worker, *([self.predictor] if self.predictor else []), self.redis):
            service.stop()

    def start_redis(self) -> None:
        self.redis.start()
        until(self.redis_answers, f"redis is up, log {self.redis.log}")

    def redis_answers(self) -> bool:
        with Redis.from_url(self.queue_url, socket_timeout=2) as client, contextlib.suppress(RedisError):
            return bool(client.ping())
        return False

    def wait_ready(self) -> None:
        for service in self.services[1:]:
            until(service.ready, f"{service.name} is ready, log {service.log}")

    def a_busy_worker(self) -> LeanWorker:
        """One whose engine checks something now."""
        found: list[LeanWorker] = []

        def look() -> bool:
            found.extend(worker for worker in self.worker if worker.process is not None and worker.busy())
            return bool(found)

        until(look, "a worker is busy")
        return found[0]

    def make_worker(self, name: str, queue_url: str | None = None, **variables: str) -> LeanWorker:
        port = free_port()
        own = {
            "LEAN_REWARD_WORKER_COUNT": "1",
            "LEAN_REWARD_WORKER_NAME": name,
            "LEAN_REWARD_WORKER_PORT": str(port),
            "LEAN_REWARD_QUEUE_URL": queue_url or self.queue_url,
            **variables,
        }
        command = [sys.executable, "-m", "services.runtime.cli", "lean-worker"]
        return LeanWorker(name, command, self._environment(own), self.folder / f"{name}.log", port)

    def _gateway(self, number: int) -> Service:
        port = free_port()
        return self._lean_reward("gateway", {"LEAN_REWARD_GATEWAY_PORT": str(port)}, port, number)

    def _lean_reward(self, command: str, own: Mapping[str, str], port: int, number: int = 0) -> Service:
        name = f"{command}-{number}"
        words = [sys.executable, "-m", "services.runtime.cli", command]
        return Service(name, words, self._environment(own), self.folder / f"{name}.log", port)

    def _environment(self, own: Mapping[str, str]) -> dict[str, str]:
        return {
            "LEAN_REWARD_QUEUE_URL": self.queue_url,
            "LEAN_REWARD_QUEUE_LEASE_S": str(LEASE_S),
            "LEAN_REWARD_QUEUE_CACHE_S": "0",  # so that asking again asks Lean again, where the record is lost
            **self.variables,
            **own,
        }

    def _redis_command(self, port: int) -> list[str]:
        options = {
            "bind": HOST,
            "port": str(port),
            "dir": str(self.folder / "redis"),
            "save": "",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes" if self.persist else "no",
            "appendfsync": "everysec",
            **({"unixsocket": str(self.redis_socket)} if self.redis_socket else {}),
        }
        return ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", value))]
