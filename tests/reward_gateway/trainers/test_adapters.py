"""Adapters called as their trainers call them, against a scripted server (named so: it judges by a word)."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from reward_gateway.client import Unavailable, Unreachable
from reward_gateway.trainers import areal, openrlhf, scoring, slime, verl
from reward_gateway.trainers.scoring import ConfigurationError, ScoringOptions
from reward_gateway.trainers.trl import LeanReward

Reply = tuple[int, Any]


class Scripted:
    """Judges by a word in the response: `right`, `wrong`, `timeout`, `down`, `flaky` (down the first time)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.flaky = 1
        self.trajectories: Callable[[dict[str, Any]], Any] = lambda body: {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.calls.append((self.path, body))
                status, answer = outer.answer(self.path, body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        if "down" in json.dumps(body):
            return 500, {}
        if "flaky" in json.dumps(body) and self.flaky:
            self.flaky -= 1
            return 503, {}
        if path == "/compat/slime":
            return 200, self.sample(body["response"])
        if path == "/v1/trajectories/score":
            return 200, self.trajectories(body)
        results = [
            {
                **{k: v for k, v in self.sample(c["response"]).items() if k in ("verdict", "source", "reason")},
                "id": c["id"],
                "reward": None if "timeout" in c["response"] else self.sample(c["response"])["score"],
                "lean": {"status": "ok"},
            }
            for c in body["candidates"]
        ]
        stats = {"candidates": 1, "prechecked": 0, "cached": 0, "duplicates": 0, "lean_share": 1.0, "elapsed_s": 0.1}
        cutoff = {"reason": "decided", "at_s": 0.1}
        return 200, {"batch_id": "b", "cutoff": cutoff, "results": results, "stats": stats}

    @staticmethod
    def sample(response: str) -> dict[str, Any]:
        if "timeout" in response:
            said = ("unknown", "fallback", "lean_timeout", "fallback")
        elif "wrong" in response:
            said = ("invalid", "lean", "compile_error", "decided")
        else:
            said = ("valid", "lean", "ok", "decided")
        verdict, source, reason, status = said
        score = float(verdict == "valid")
        return {"score": score, "status": status, "verdict": verdict, "source": source, "reason": reason}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    scripted = Scripted()
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", scripted.url)
    yield scripted
    scripted.server.shutdown()
    scripted.server.server_close()


# Policy


def test_a_fallback_must_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="needs a `fallback`"):
        ScoringOptions.of(on_failure="fallback")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "zero")
    with pytest.raises(ConfigurationError, match="LEAN_REWARD_CLIENT_ON_FAILURE"):
        ScoringOptions.of()
    with pytest.raises(ConfigurationError, match="no option uri"):
        ScoringOptions.of(on_failure="raise", uri="x")


# verl


async def test_verl_gets_the_same_numbers_for_every_sample(server: Scripted) -> None:
    answers = [
        await verl.compute_score("d", response, "theorem t : True", {"index": 3})
        for response in ("right", "wrong", "timeout")
    ]
    assert answers[0] == {"score": 1.0, "acc": 1.0, "lean_undecided": 0.0, "lean_failed": 0.0}
    assert answers[2] == {"score": 0.0, "acc": 0.0, "lean_undecided": 1.0, "lean_failed": 0.0}
    assert len({tuple(answer) for answer in answers}) == 1
    assert server.calls[0][1]["label"] == {"group": "d-3", "statement": "theorem t : True"}


async def test_verl_retries_and_then_does_what_it_was_told(server: Scripted) -> None:
    assert (await verl.compute_score("d", "flaky", "s", reward_router_address="x"))["score"] == 1.0
    with pytest.raises(Unavailable):
        await verl.compute_score("d", "down", "s")
    failed = await verl.compute_score("d", "down", "s", on_failure="fallback", fallback=-0.5)
    assert failed == {"score": -0.5, "acc": 0.0, "lean_undecided": 0.0, "lean_failed": 1.0}
    with pytest.raises(Unreachable):
        await verl.compute_score("d", "right", "s", url="http://127.0.0.1:1", patience_s=-99.5)


def _rows(body: dict[str, Any]) -> Any:
    rollout = body["rollouts"][0]
    steps = [
        {"step": i, "phase": "exec", "general_stage": "look", "beta": 1, "gamma": -1, "alpha": rollout["alpha"]}
        for i in range(len(rollout["trajectory"]))
    ]
    result = {"id": "rollout", "alpha": rollout["alpha"], "format": "steps", "steps": steps}
    return {"group": "single", "pass_rate": None, "process_band": False, "rollouts": [result], "elapsed_s": 0.1}


async def test_verl_carries_an_agents_signals(server: Scripted) -> None:
    server.trajectories = _rows
    record = {
        "trajectory": [{"thought": "a"}, {"thought": "b"}],
        "spans": [[0, 2], [2, 5]],
        "general_workflow": ["look"],
    }
    found = await verl.compute_workflow_score("d", "wrong", "theorem t : True", {"workflow": record})
    assert found["score"] == -1.0
    assert found["workflow"] == {"alpha": -1, "stages": 1, "steps": [[0, 2, 0, 1, -1], [2, 5, 0, 1, -1]]}
    unknown = await verl.compute_workflow_score("d", "timeout", "s", {})
    assert (unknown["score"], unknown["lean_known"], unknown["workflow"]["alpha"]) == (0.0, 0.0, None)
    assert list(found) == list(unknown)


# slime


def sample(response: str, group: int = 0, **fields: Any) -> Any:
    given = {"label": "theorem t : True", "metadata": {}, "reward": None, "loss_mask": None, "rollout_id": None}
    return SimpleNamespace(response=response, response_length=4, group_index=group, **{**given, **fields})


async def test_slime_takes_one_sample_or_a_group(server: Scripted) -> None:
    one = await slime.reward(None, sample("wrong"))
    assert one == {"score": 0.0, "status": "decided", "verdict": "invalid", "reason": "compile_error"}
    many = await slime.reward(None, [sample("right", 7), sample("timeout", 7)])
    assert [m["score"] for m in many] == [1.0, 0.0]
    assert many[1]["status"] == "undecided"
    assert [path for path, _ in server.calls] == ["/compat/slime", "/v1/proofs/score"]
    assert {c["group"] for c in server.calls[1][1]["candidates"]} == {"7"}


def test_slime_groups_by_name_and_not_by_position() -> None:
    scores = [(0, 1.0), (1, 0.0), (0, 0.0), (1, 0.0), (0, None)]
    samples = [sample("x", group, reward=None if score is None else {"score": score}) for group, score in scores]
    raw, normalised = slime.post_process(SimpleNamespace(), samples)
    assert raw == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert normalised == pytest.approx([0.70710578, 0.0, -0.70710578, 0.0, 0.0], abs=1e-5)
    assert slime.post_process(SimpleNamespace(grpo_std_normalization=False), samples)[1][0] == 0.5


async def test_slime_carries_rewards_of_steps(server: Scripted) -> None:
    server.trajectories = _rows
    record = {
        "trajectory": [{"thought": "a"}, {"thought": "b"}],
        "spans": [[0, 2], [2, 4]],
        "general_workflow": ["look"],
    }
    samples = [
        sample(response, metadata={"workflow": record}, loss_mask=[1, 1, 0, 1]) for response in ("right", "wrong")
    ]
    for one in samples:
        one.reward = await slime.reward(None, one)
    raw, rewards = slime.post_process(SimpleNamespace(), samples)
    assert raw == [1.0, -1.0]
    assert [len(row) for row in rewards] == [4, 4]
    assert rewards[0][2] == rewards[1][2] == 0.0  # an observation
    assert rewards[0][0] > 0 > rewards[1][0]
    assert rewards[0][3] == pytest.approx(2 * rewards[0][0])  # a step's weight is shared by its tokens


# OpenRLHF, TRL, AReaL


def test_openrlhf_gets_numbers_of_one_length(server: Scripted) -> None:
    single = openrlhf.reward_func(["prompt wrong|right"], ["prompt wrong|"], ["theorem t : True"])
    assert single == {"rewards": 1.0, "scores": 1.0, "extra_logs": {"lean_undecided": 0.0, "lean_failed": 0.0}}
    several = openrlhf.reward_func(["right", "wrong", "timeout"], [""] * 3, ["s"] * 3)
    assert several["rewards"] == [1.0, 0.0, 0.0]
    assert several["extra_logs"]["lean_undecided"] == [0.0, 0.0, 1.0]
    with pytest.raises(Unavailable):
        openrlhf.reward_func(["down"], [""], ["s"])


async def test_trl_gets_none_for_what_cannot_be_scored(server: Scripted) -> None:
    function = LeanReward()
    prompts = ["p", "p", "q"]
    completions = ["right", [{"role": "assistant", "content": "wrong"}], "timeout"]
    columns = {"statement": ["theorem t : True"] * 3, "completion_ids": [[1]] * 3, "trainer_state": None}
    assert await function(prompts=prompts, completions=completions, **columns) == [1.0, 0.0, None]
    assert [c["group"] for c in server.calls[0][1]["candidates"]] == ["p0", "p0", "p2"]
    assert await function(prompts=["p"], completions=["down"], statement=["s"]) == [None]
    with pytest.raises(Unavailable):
        await LeanReward(on_failure="raise")(prompts=["p"], completions=["down"], statement=["s"])
    assert asyncio.iscoroutinefunction(type(function).__call__)


def test_areals_function_can_be_pickled(server: Scripted) -> None:
    function = pickle.loads(pickle.dumps(areal.lean_reward))
    assert function("p", "right", [1], [2], statement="theorem t : True", other=1) == 1.0
    assert function("p", ["wrong"], [1], [2]) == 0.0
    with pytest.raises(Unavailable):
        function("p", "down", [1], [2])


def test_a_scorer_survives_pickling_and_keeps_its_policy(server: Scripted) -> None:
    held = scoring.scorer(ScoringOptions.of(on_failure="fallback", fallback=-1))
    held.sample_now("right", "s")
    assert pickle.loads(pickle.dumps(held)).sample_now("down", "s").score == -1.0


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("a", "a"),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}, "a"),
        ([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}, {"role": "assistant"}], "a\n"),
        (["a"], "a"),
    ],
)
def test_completions_of_every_shape_become_text(completion: Any, text: str) -> None:
    assert scoring.text_of(completion) == text
