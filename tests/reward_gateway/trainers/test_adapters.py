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

from reward_gateway.client import ConfigurationError, Refused, Unavailable, Unreachable
from reward_gateway.trainers import areal, openrlhf, scoring, slime, verl
from reward_gateway.trainers.scoring import ScoringOptions
from reward_gateway.trainers.trl import LeanReward

Reply = tuple[int, Any]


class Scripted:
    """Judges by a word in the response: `right`, `wrong`, `timeout`, `down`, `flaky` (down the first time), `refused`,
    `absent` (Lean was not there for it), `forgiven` (the same, but the server gives its own fallback).
    """

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
        if "refused" in json.dumps(body):
            return 401, {}
        if path == "/compat/slime":
            return 200, self.sample(body["response"])
        if path == "/v1/trajectories/score":
            return 200, self.trajectories(body)
        results = [
            {
                **{k: v for k, v in self.sample(c["response"]).items() if k in ("verdict", "source", "reason")},
                "id": c["id"],
                "reward": self.sample(c["response"])["score"] if self.decides(c["response"]) else None,
                "lean": {"status": "unavailable" if "absent" in c["response"] else "ok"},
            }
            for c in body["candidates"]
        ]
        stats = {"candidates": 1, "prechecked": 0, "cached": 0, "duplicates": 0, "lean_share": 1.0, "elapsed_s": 0.1}
        cutoff = {"reason": "decided", "at_s": 0.1}
        return 200, {"batch_id": "b", "cutoff": cutoff, "results": results, "stats": stats}

    @staticmethod
    def decides(response: str) -> bool:
        return not any(word in response for word in ("timeout", "absent", "forgiven"))

    @staticmethod
    def sample(response: str) -> dict[str, Any]:
        if "timeout" in response:
            said = ("unknown", "fallback", "lean_timeout", "fallback")
        elif "absent" in response:
            said = ("unknown", "fallback", "not_decided", "fallback")
        elif "forgiven" in response:
            said = ("unknown", "fallback", "infrastructure", "fallback")
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


def sample(response: str, group: int = 0, **fields: Any) -> Any:
    given = {"label": "theorem t : True", "metadata": {}, "reward": None, "loss_mask": None, "rollout_id": None}
    return SimpleNamespace(response=response, **{"response_length": 4, "group_index": group, **given, **fields})


# Policy


def test_a_fallback_must_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="needs a `fallback`"):
        ScoringOptions.of(on_failure="fallback")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "zero")
    with pytest.raises(ConfigurationError, match="LEAN_REWARD_CLIENT_ON_FAILURE"):
        ScoringOptions.of()
    with pytest.raises(ConfigurationError, match="no option uri"):
        ScoringOptions.of(on_failure="raise", uri="x")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("patience_s", 0, r"patience_s \(LEAN_REWARD_CLIENT_PATIENCE_S\) cannot be 0"),
        ("patience_s", "nan", "cannot be nan"),
        ("deadline_s", -1, r"deadline_s \(LEAN_REWARD_CLIENT_DEADLINE_S\) cannot be -1"),
        ("fallback", "nan", "finite number"),
        ("fallback", "-inf", "finite number"),
        ("url", "rewards:8000", "http://rewards:8000 is needed"),
        ("key", "s\u00e9cret", "character 2 of 6"),
    ],
)
def test_an_option_that_cannot_be_is_refused_when_it_is_configured(option: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        LeanReward(**{option: value})
    assert "cret" not in str(raised.value)


def test_a_key_is_in_no_text_of_the_options() -> None:
    assert "secret" not in repr(ScoringOptions.of(key="secret"))


async def test_unscorable_is_refused_where_a_trainer_needs_numbers(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="needs a number"):
        await verl.compute_score("d", "right", "s", on_failure="unscorable")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "unscorable")
    for call in (
        lambda: areal.lean_reward("p", "right", statement="s"),
        lambda: openrlhf.reward_func(["right"], [""], ["s"]),
        lambda: asyncio.run(slime.reward(None, sample("right"))),
        lambda: asyncio.run(slime.reward(None, [sample("right")])),
    ):
        with pytest.raises(ConfigurationError, match="needs a number"):
            await asyncio.to_thread(call)
    assert not server.calls


async def test_a_refusal_is_an_error_whatever_is_given_for_failures(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused):
        await LeanReward()(prompts=["p"], completions=["refused"], statement=["s"])
    options = {"on_failure": "fallback", "fallback": -1}
    with pytest.raises(Refused):
        await verl.compute_score("d", "refused", "s", **options)
    record = {"trajectory": [{"thought": "refused"}], "spans": [[0, 1]], "general_workflow": ["look"], "alpha": 1}
    with pytest.raises(Refused):
        await verl.compute_workflow_score("d", "", "s", {"workflow": record}, **options)
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "fallback")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_FALLBACK", "-1")
    with pytest.raises(Refused):
        await asyncio.to_thread(areal.lean_reward, "p", "refused", statement="s")


async def test_a_part_of_the_server_that_was_missing_is_a_failure_and_no_zero(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [sample("right"), sample("absent"), sample("timeout")]
    with pytest.raises(Unavailable, match="sample 1 of the batch: not_decided"):
        await slime.reward(None, samples)
    with pytest.raises(Unavailable, match="a part of the server"):
        await slime.reward(None, sample("forgiven"))
    monkeypatch.setenv("LEAN_REWARD_CLIENT_ON_FAILURE", "fallback")
    monkeypatch.setenv("LEAN_REWARD_CLIENT_FALLBACK", "-1")
    assert [one["status"] for one in await slime.reward(None, samples)] == ["decided", "failed", "undecided"]
    assert (await slime.reward(None, sample("forgiven")))["score"] == -1.0
    found = await LeanReward(on_failure="unscorable")(
        prompts=["p"] * 2, completions=["right", "absent"], statement="ss"
    )
    assert found == [1.0, None]
    with pytest.raises(Unavailable):
        await LeanReward(on_failure="raise")(prompts=["p"], completions=["absent"], statement=["s"])


# Labels


@pytest.mark.parametrize(
    "label",
    ["theorem t : True", {"statement": "theorem t : True"}, '{"statement": "theorem t : True", "level": 3}'],
)
async def test_a_label_means_the_same_in_every_form(server: Scripted, label: Any) -> None:
    await slime.reward(None, sample("right", 7, label=label))
    await slime.reward(None, [sample("right", 7, label=label)])
    await verl.compute_score("d", "right", label, {"index": 3})
    await asyncio.to_thread(openrlhf.reward_func, ["right"], [""], [label])
    (one, many, of_verl, of_openrlhf) = (body for _, body in server.calls)
    assert one["label"] == {"statement": "theorem t : True", "group": "7"}
    assert many["candidates"] == [{"id": "0", "response": "right", **one["label"]}]
    assert of_verl["label"] == {"statement": "theorem t : True", "group": "d-3"}
    assert of_openrlhf["label"] == {"statement": "theorem t : True"}


def test_the_labels_own_group_wins() -> None:
    task = scoring.task_of({"statement": "s", "group": 3, "group_size": 8}, "other")
    assert (task.group, task.group_size) == ("3", 8)


@pytest.mark.parametrize("label", [None, "", " ", {}, {"stmt": "theorem t : True"}, '{"stmt": 1}', ["s"], "[1]", 3])
async def test_a_label_without_a_statement_is_refused(server: Scripted, label: Any) -> None:
    for call in (
        slime.reward(None, sample("right", label=label)),
        slime.reward(None, [sample("right", label=label)]),
        verl.compute_score("d", "right", label),
    ):
        with pytest.raises(ConfigurationError, match=r'\{"statement": null\} says that any theorem counts'):
            await call
    assert not server.calls


def test_a_label_with_other_faults_is_named() -> None:
    with pytest.raises(ConfigurationError, match="starts like JSON and is none"):
        scoring.task_of('{"statement": ')
    with pytest.raises(ConfigurationError, match=r"the label \{'statement': 3\}: `statement`: .*string"):
        scoring.task_of({"statement": 3})


async def test_a_statement_of_none_says_that_any_theorem_counts(server: Scripted) -> None:
    await slime.reward(None, sample("right", label={"statement": None}))
    await LeanReward()(prompts=["p"], completions=["right"], statement=[None])
    assert server.calls[0][1]["label"] == {"statement": None, "group": "0"}
    assert server.calls[1][1]["candidates"] == [{"id": "0", "response": "right", "group": "p0"}]


async def test_a_column_of_another_name_is_refused(server: Scripted) -> None:
    with pytest.raises(ConfigurationError, match="no column `statement`, only completion_ids, theorem: None"):
        await LeanReward()(prompts=["p"], completions=["right"], theorem=["s"], completion_ids=[[1]])
    with pytest.raises(ConfigurationError, match="no `statement`, only theorem: None"):
        await asyncio.to_thread(areal.lean_reward, "p", "right", theorem="s")
    assert not server.calls


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


async def test_a_server_that_stays_away_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_gateway.client._SAMPLE_S", 0.1)
    with pytest.raises(Unreachable):
        await verl.compute_score("d", "right", "s", url="http://127.0.0.1:1", patience_s=0.1)


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


async def test_slime_counts_the_outcome_of_a_sample_that_left_no_record(server: Scripted) -> None:
    server.trajectories = _rows
    record = {"trajectory": [{"thought": "a"}], "spans": [[0, 4]], "general_workflow": ["look"]}
    samples = [sample("wrong", metadata={"workflow": record}), sample("right"), sample("timeout")]
    for one in samples:
        one.reward = await slime.reward(None, one)
    _, rewards = slime.post_process(SimpleNamespace(), samples)
    assert rewards[1][0] > 0
    assert rewards[2] == [0.0] * 4


def _agents(*parts: tuple[int | None, Any], **fields: Any) -> list[Any]:
    """Samples of one group with signals of one step; each of an alpha and a rollout id."""
    return [
        sample(
            "x", rollout_id=name, reward={"workflow": {"alpha": a, "stages": 1, "steps": [[0, 4, 0, 1, 0]]}}, **fields
        )
        for a, name in parts
    ]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (_agents((1, None), (1, None), loss_mask=[1, 1]), "sample 0: a loss_mask of 2 for a response of 4 tokens"),
        (_agents((1, None), response_length=3), "sample 0: step 0 has the tokens"),
        (_agents((1, 7), (None, 7), (-1, 7)), "samples 0 and 2 share the rollout_id 7"),
        (_agents((1, 7), (1, 7)), "all 2 samples of group 0 share the rollout_id 7"),
    ],
)
def test_slime_names_what_cannot_belong_to_a_sample(samples: list[Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        slime.post_process(SimpleNamespace(n_samples_per_prompt=2), samples)


def test_rollouts_of_different_groups_may_have_one_rollout_id() -> None:
    samples = _agents((1, 7), (-1, 8))
    other = _agents((-1, 7), (-1, 8))
    for one in other:
        one.group_index = 1
    _, rewards = slime.post_process(SimpleNamespace(n_samples_per_prompt=2), samples + other)
    assert rewards[0][0] > 0 > rewards[1][0]


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [("spans", None, "has no `spans`"), ("spans", [[3, 1]], r"record of the agent loop: span 0 is \[3, 1\]")],
)
async def test_a_record_that_cannot_be_used_is_named(server: Scripted, part: str, value: Any, message: str) -> None:
    server.trajectories = _rows
    record = {"trajectory": [{"thought": "a"}], "spans": [[0, 4]], "general_workflow": ["look"], "alpha": 1}
    with pytest.raises(ConfigurationError, match=message):
        await slime.reward(None, sample("x", metadata={"workflow": {**record, part: value}}))


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
    assert function("p", ["wrong"], [1], [2], statement=None) == 0.0
    with pytest.raises(Unavailable):
        function("p", "down", [1], [2], statement=None)


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
