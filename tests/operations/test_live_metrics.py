"""A real Prometheus scrapes the running platform under a little load: everything that we ship returns series."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.contracts.outcomes import Reason
from services.contracts.problems import ProblemCode
from tests.operations.documented_metrics import documented, label_values
from tests.operations.queries import alert_queries, panel_queries, recording_queries, rules
from tests.operations.stack import Stack, wait_until
from tests.reward_gateway.trajectories.rollouts import group, rollout, segments, workflow
from tests.reward_gateway.trajectories.scripted_judge import ScriptedJudge, judged

pytestmark = [
    pytest.mark.lean,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus: apt-get install prometheus"),
]

STEPS = [
    {"thought": "wait", "tool_calls": [{"name": "bash", "arguments": {"command": command}}], "observation": observation}
    for command, observation in (("ls", "a.py"), ("sleep 5", ""), ("echo done", "done"))
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with lying_judge() as judge:
        running = Stack(tmp_path_factory.mktemp("stack"), judge=judge)
        try:
            running.start()
            load(running)
            yield running
        finally:
            running.stop()


@contextmanager
def lying_judge() -> Iterator[str]:
    """A model server that supports every requirement with a quote that is nowhere; yields its base URL."""
    judge = ScriptedJudge(lambda asked: judged(*[("support", "all of the tests have passed")] * asked.requirements))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(judge.start(), loop).result(20)
        yield judge.url
        asyncio.run_coroutine_threadsafe(judge.stop(), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)


def load(stack: Stack) -> None:
    """Some of everything, twice, so that counters that appear with it have an increase."""
    for turn in range(3):
        for mode in ("lean", "hybrid", "evaluator"):
            score(stack, mode, turn)
        candidate = {"id": "slow", "code": f"theorem s{turn} : True := by\n  repeat (first | skip)\n  trivial"}
        post(stack, "/v1/proofs/score", {"candidates": [candidate], "mode": "lean", "cutoff": {"deadline_s": 0.5}})
        assert post(stack, "/v1/proofs/score", {"candidates": 1}).status_code == 422
        trajectory = {"format": "steps", "trajectory": STEPS}
        assert post(stack, "/v1/trajectories/penalties", trajectory).status_code == 200
        stages = {"workflow": workflow(), "segments": segments((0, 0), (1, 0), (2, 0))}
        rollouts = [rollout(f"r{turn}{alpha}", alpha, **stages) for alpha in (-1, 1)]
        answer = post(stack, "/v1/trajectories/score", group(*rollouts, rollout("plain"), want=["gamma", "beta"]))
        assert answer.status_code == 200, answer.text
        sample = {
            "prompt": "p",
            "response": f"```lean4\ntheorem c{turn} : 1 = 1 := rfl\n```",
            "label": "theorem c : 1 = 1",
        }
        answer = post(stack, "/compat/slime", sample)
        assert answer.status_code == 200, answer.text
        time.sleep(3)


def score(stack: Stack, mode: str, turn: int) -> None:
    right = f"theorem t{turn}{mode} (a b : Nat) : a + b = b + a := by omega"
    wrong = f"theorem t{turn}{mode} (a b : Nat) : a + b = b + a := by rfl"
    forbidden = "theorem t : 1 = 2 := by native_decide"
    candidates = [{"id": f"{kind}{n}", "code": code} for n in range(2) for kind, code in (("r", right), ("w", wrong))]
    body = {"candidates": [*candidates, {"id": "f", "code": forbidden}], "mode": mode, "cutoff": {"deadline_s": 20}}
    answer = post(stack, "/v1/proofs/score", body)
    assert answer.status_code == 200, answer.text


def post(stack: Stack, path: str, body: Any) -> httpx.Response:
    return httpx.post(f"http://{stack.gateway}{path}", json=body, timeout=60)


@pytest.mark.parametrize("service", ["gateway", "worker", "evaluator"])
def test_a_service_exposes_the_documented_metrics_with_listed_labels(stack: Stack, service: str) -> None:
    text = httpx.get(f"http://{getattr(stack, service)}/metrics", timeout=10).text
    families = {f.name: f for f in text_string_to_metric_families(text) if f.name.startswith("lean_reward_")}
    assert set(families) == set(documented())
    elsewhere = {"reason": {r.value for r in Reason}, "code": {c.value for c in ProblemCode}}
    for name, family in families.items():
        page = documented()[name]
        assert family.type == page.kind
        for sample in family.samples:
            for label, value in sample.labels.items():
                if label == "le":
                    continue
                values = label_values()[page.labels[label]] or elsewhere.get(page.labels[label])
                assert values is None or value in values, f"{name} has {label}={value}"


def test_every_target_is_scraped(stack: Stack) -> None:
    wait_until(lambda: len(stack.query("up == 1")) == 3, 30, "three targets are up")


def test_every_rule_evaluates(stack: Stack) -> None:
    def evaluated() -> bool:
        groups = httpx.get(f"http://{stack.prometheus}/api/v1/rules", timeout=10).json()["data"]["groups"]
        states = [(rule["name"], rule["health"], rule.get("lastError")) for g in groups for rule in g["rules"]]
        assert not [state for state in states if state[1] == "err"], states
        return len(states) == len(rules("recording.yml")) + len(rules("alerts.yml")) and all(
            s[1] == "ok" for s in states
        )

    wait_until(evaluated, 30, "all rules are evaluated")


def test_every_query_returns_series(stack: Stack) -> None:
    queries = [*recording_queries(), *alert_queries(), *panel_queries()]
    silent: list[str] = []

    def all_answer() -> bool:
        silent[:] = [f"{q.place}: {q.expression}" for q in queries if not stack.query(q.expression)]
        return not silent

    try:
        wait_until(all_answer, 30, "every query returns series")
    except AssertionError:
        pytest.fail("no series:\n" + "\n".join(silent))


def test_nothing_critical_fires_on_a_healthy_platform(stack: Stack) -> None:
    assert stack.query('ALERTS{alertstate="firing",severity="critical"}') == []
