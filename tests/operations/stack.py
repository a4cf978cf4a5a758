"""The platform as an operator runs it: real processes on this machine, watched by a real Prometheus."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.operations.queries import ROOT, RULES

_RULES_INTERVAL = re.compile(r"\[(?:5m|10m|15m|30m|1h)\]")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(happened: Callable[[], bool], limit_s: float, what: str) -> None:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        if happened():
            return
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {limit_s:g} s")


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.TransportError:
        return False


@dataclass
class Stack:
    """`up` (queue, gateway, worker) with an evaluator, and Prometheus on top; `stop` ends all of it."""

    folder: Path
    gateway: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    worker: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    evaluator: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    prometheus: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    judge: str = ""  # base URL of a model server; empty: stages are not judged
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        environment = {
            **os.environ,
            "LEAN_REWARD_EVALUATOR_PORT": self.evaluator.partition(":")[2],
            "LEAN_REWARD_GATEWAY_EVALUATOR_URLS": f"http://{self.evaluator}",
            "LEAN_REWARD_GATEWAY_AUDIT_SHARE": "1",
            "LEAN_REWARD_WORKER_PORT": self.worker.partition(":")[2],
            **({"LEAN_REWARD_JUDGE_URL": self.judge} if self.judge else {}),
        }
        lean_reward = [sys.executable, "-m", "services.runtime.cli"]
        self._run("evaluator", [*lean_reward, "evaluator"], environment)
        wait_until(lambda: answers(f"http://{self.evaluator}/readyz"), 60, self.log("evaluator"))
        up = [*lean_reward, "up", "--workers", "1", "--port", self.gateway.partition(":")[2]]
        self._run("up", up, environment)
        wait_until(lambda: answers(f"http://{self.gateway}/readyz"), 120, self.log("up"))
        self._run("prometheus", self._prometheus_command(), dict(os.environ))
        wait_until(lambda: answers(f"http://{self.prometheus}/-/ready"), 30, self.log("prometheus"))

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name: str) -> str:
        return f"{name}, log {self.folder / name}.log"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query; fails with Prometheus' own words when it cannot be evaluated."""
        answer = httpx.get(f"http://{self.prometheus}/api/v1/query", params={"query": expression}, timeout=30).json()
        assert answer["status"] == "success", f"{expression}: {answer.get('error')}"
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def _run(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
        self.processes.append(process)

    def _prometheus_command(self) -> list[str]:
        """Prometheus with our configuration, its targets and intervals set for a test.

        Every range in the rules becomes 30 seconds, since a test does not run for an hour.
        """
        settings = yaml.safe_load((ROOT / "docker" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
        settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings["rule_files"] = [str(self.folder / "rules" / "*.yml")]
        targets = {
            "lean-reward-gateway": self.gateway,
            "lean-reward-worker": self.worker,
            "lean-reward-evaluator": self.evaluator,
        }
        for job in settings["scrape_configs"]:
            del job["dns_sd_configs"]
            job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
        (self.folder / "rules").mkdir()
        for path in RULES.glob("*.yml"):
            (self.folder / "rules" / path.name).write_text(_RULES_INTERVAL.sub("[30s]", path.read_text()))
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        return [
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={self.prometheus}",
            "--log.level=warn",
        ]
