"""verl's own code around our function, reward manager, agent-loop output and estimator, against a live server."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from live import RESPONSES, REWARDS, RIGHT, STATEMENT, URL, Trouble
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics
from verl.trainer.ppo.core_algos import agg_loss
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.reward import load_reward_manager
from verl.trainer.ppo.v1.trainer_base import get_trainer_cls
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from reward_gateway.trainers.stages import PLANNING, UNANNOTATED, RolloutSignals, StepSignals, encode
from services.rewards.group import RolloutSignals as GroupRollout
from services.rewards.group import StepSignals as GroupStep
from services.rewards.group import score_group

plugin = importlib.import_module("reward_gateway.trainers.verl_plugin")


class Tokenizer:
    """One token a character."""

    def decode(self, ids: Any, **_: Any) -> str:
        return "".join(chr(int(i)) for i in ids)


def manager(name: str = "naive", path: str | None = "pkg://reward_gateway.trainers.verl", **options: Any) -> Any:
    reward: dict[str, Any] = {"reward_manager": {"source": "register", "name": name, "module": None}}
    reward["custom_reward_function"] = {"path": path, "name": "compute_score", "reward_kwargs": options}
    return load_reward_manager(OmegaConf.create({"reward": reward}), Tokenizer())


def sample(response: str, extra_fields: dict[str, Any] | None = None) -> DataProto:
    ids = torch.tensor([[ord(c) for c in response]])
    batch = TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
    given = {
        "data_source": "lean",
        "reward_model": {"ground_truth": STATEMENT},
        "extra_info": {"index": 3},
        "__num_turns__": 1,
        "tool_extra_fields": extra_fields or {},
    }
    return DataProto(batch=batch, non_tensor_batch={k: np.array([v], dtype=object) for k, v in given.items()})


async def test_every_response_gets_its_reward_under_the_same_keys() -> None:
    naive = manager(url=URL)
    answers = [await naive.run_single(sample(response)) for response in RESPONSES]
    assert tuple(answer["reward_score"] for answer in answers) == REWARDS
    assert len({tuple(answer["reward_extra_info"]) for answer in answers}) == 1


async def test_a_restart_an_overload_and_a_slow_server_lose_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = Trouble()
    naive = manager(url=trouble.url)
    with trouble.down_for(1.5):
        assert (await naive.run_single(sample(RIGHT)))["reward_score"] == 1.0
    trouble.overloads, trouble.delay_s = 1, 1.0
    assert (await naive.run_single(sample(RIGHT)))["reward_score"] == 1.0
    trouble.stop()
    monkeypatch.setattr("reward_gateway.client._SAMPLE_S", 0.5)
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        await manager(url=trouble.url, patience_s=0.5).run_single(sample(RIGHT))
    gone = await manager(url=trouble.url, patience_s=0.5, on_failure="fallback", fallback=-1).run_single(sample(RIGHT))
    assert (gone["reward_score"], gone["reward_extra_info"]["lean_failed"]) == (-1.0, 1.0)


async def test_the_registered_manager_brings_the_steps_of_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_REWARD_CLIENT_URL", URL)
    ours = manager("lean_reward", path=None)
    record = {
        "trajectory": [
            {"thought": "look", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}], "stage": "look"},
            {"thought": "nothing", "tool_calls": [{"name": "bash", "arguments": {"command": "true"}}], "stage": "fix"},
        ],
        "format": "steps",
        "spans": [[0, 5], [5, 9]],
        "general_workflow": ["look", "fix"],
        "alpha": 1,
    }
    answer = await ours.run_single(sample(RIGHT, {"workflow": record}))
    signals = RolloutSignals.of(answer["reward_extra_info"]["workflow"])
    assert (answer["reward_score"], signals.alpha, signals.stages) == (1.0, 1, 2)
    assert [(s.start, s.end, s.stage, s.gamma) for s in signals.steps] == [(0, 5, 0, 0), (5, 9, 1, -1)]
    plain = await ours.run_single(sample(RESPONSES[1]))
    assert (plain["reward_score"], list(plain["reward_extra_info"])) == (-1.0, list(answer["reward_extra_info"]))


def output(signals: RolloutSignals, length: int) -> Any:
    return plugin.WorkflowOutput(
        prompt_ids=[1, 2],
        response_ids=list(range(length)),
        response_mask=[1] * length,
        reward_score=float(signals.alpha or 0),
        metrics=AgentLoopMetrics(),
        extra_fields={"workflow": {"x": 1}, "reward_extra_info": {"score": 1.0, "workflow": signals.plain()}},
    )


def test_an_agents_output_carries_one_code_a_token() -> None:
    signals = RolloutSignals(1, 2, (StepSignals(0, 2, 0, 1), StepSignals(3, 5, 1, -1, -1)))
    held = output(signals, 6)
    field = held.as_dict()
    assert field[plugin.CODES].tolist() == encode(signals, 6)
    assert field["rm_scores"].tolist() == [0, 0, 0, 0, 0, 1]
    assert field["extra_fields"] == {"reward_extra_info": {"score": 1.0}}
    assert held.extra_fields["reward_extra_info"]["workflow"] == signals.plain()  # may be asked again
    both = list_of_dict_to_tensordict([field, output(RolloutSignals(None, 2), 3).as_dict()])
    padded = both.select(plugin.CODES).to_padded_tensor()[plugin.CODES]
    assert padded.shape == (2, 6)
    assert padded[1].tolist() == [0] * 6


def random_rollout(rng: np.random.Generator) -> RolloutSignals:
    steps, at = [], 0
    for _ in range(int(rng.integers(1, 5))):
        start, at = at, at + int(rng.integers(1, 4))
        stage = int(rng.integers(PLANNING, 3))
        beta, gamma = (UNANNOTATED, 0) if stage == PLANNING else (int(rng.integers(-1, 2)), int(rng.integers(-1, 1)))
        steps.append(StepSignals(start, at, stage, beta, gamma))
    return RolloutSignals(int(rng.choice([-1, 1])), 3, tuple(steps))


def test_the_estimator_equals_services_rewards_and_the_loss_equals_equation_4() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        size, width = 4, 20
        groups = [[random_rollout(rng) for _ in range(size)] for _ in range(3)]
        rows = [(g, signals) for g, group in enumerate(groups) for signals in group]
        rng.shuffle(rows)  # type: ignore[arg-type]
        codes = torch.tensor([encode(signals, width) for _, signals in rows])
        scores = torch.zeros(len(rows), width)
        data = DataProto(
            batch=TensorDict(
                {"token_level_rewards": scores, "response_mask": (codes > 0).long()}, batch_size=len(rows)
            ),
            non_tensor_batch={"uid": np.array([f"u{g}" for g, _ in rows], dtype=object)},
        )
        with plugin.codes_of_batch(codes):
            found = compute_advantage(data, "workflow_stage_grpo", config=OmegaConf.create({})).batch
        objective = 0.0
        gradient = torch.tensor(rng.normal(size=(len(rows), width)), dtype=torch.float32)
        for g in range(len(groups)):
            members = [at for at, (home, _) in enumerate(rows) if home == g]
            scored = score_group(
                [
                    GroupRollout(
                        rows[at][1].alpha,
                        [
                            GroupStep(None if s.stage < 0 else s.stage, s.beta or None, s.gamma)
                            for s in rows[at][1].steps
                        ],
                    )
                    for at in members
                ],
                stages=3,
            )
            for at, found_rows in zip(members, scored.steps, strict=True):
                for step, row in zip(rows[at][1].steps, found_rows, strict=True):
                    span, tokens = slice(step.start, step.end), step.end - step.start
                    expected = row.advantage * row.weight * size / tokens
                    torch.testing.assert_close(
                        found["advantages"][at, span], torch.full((tokens,), expected), atol=1e-6, rtol=1e-5
                    )
                    torch.testing.assert_close(found["returns"][at, span], torch.full((tokens,), row.reward))
                    objective += float(row.weight * row.advantage * gradient[at, span].mean()) / len(groups)
        loss = agg_loss(found["advantages"] * gradient, data.batch["response_mask"], "seq-mean-token-sum")
        assert float(loss) == pytest.approx(objective, abs=1e-5)


def test_without_the_trainer_that_brings_the_stages_the_estimator_refuses() -> None:
    ones = torch.ones(1, 2)
    with pytest.raises(RuntimeError, match="workflow_sync"):
        plugin.workflow_stage_grpo(ones, ones, index=np.array(["a"]))


def test_the_trainer_hands_the_codes_to_the_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue and the trainer below it stand in for a cluster's."""
    trainer = get_trainer_cls("workflow_sync")
    held_trainer = object.__new__(trainer)  # one made the usual way needs a cluster
    signals = RolloutSignals(1, 1, (StepSignals(0, 2, 0, 1),))
    fields = [output(signals, 3).as_dict(), output(RolloutSignals(-1, 1, signals.steps), 2).as_dict()]
    held = list_of_dict_to_tensordict(fields)
    monkeypatch.setattr(
        plugin.tq, "kv_batch_get", lambda keys, partition_id, select_fields: held.select(*select_fields)
    )

    def base(self: Any, batch: Any, metrics: Any) -> Any:
        ones = torch.ones(2, 3)
        return plugin.workflow_stage_grpo(torch.zeros(2, 3), ones, index=np.array(["u", "u"], dtype=object))

    monkeypatch.setattr(trainer.__mro__[1], "_compute_advantage", base)
    batch = SimpleNamespace(keys=["u_0_0", "u_1_0"], partition_id="train")
    advantages, _ = held_trainer._compute_advantage(batch, {})
    assert advantages[0, 0] > 0 > advantages[1, 0]
    batch.keys = ["u_0_0", "u_0_1"]
    with pytest.raises(ValueError, match="one output"):
        held_trainer._compute_advantage(batch, {})
