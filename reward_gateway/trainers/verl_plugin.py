"""verl's registries: load with `VERL_USE_EXTERNAL_MODULES=reward_gateway.trainers.verl_plugin`, in the Ray workers too.

- reward manager `lean_reward`: `trainers.verl.compute_workflow_score` without any path in the configuration;
- `WorkflowOutput`, which a custom agent loop returns, carries one code a token next to its response;
- trainer mode `workflow_sync` hands the codes to the
- advantage estimator `workflow_stage_grpo`: equations 1 to 6 over the whole batch, the loss weights folded in. Use it
  with `actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
import transfer_queue as tq  # type: ignore[import-not-found]
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput  # type: ignore[import-not-found]
from verl.experimental.reward_loop.reward_manager import register  # type: ignore[import-not-found]
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager  # type: ignore[import-not-found]
from verl.trainer.ppo.core_algos import register_adv_est  # type: ignore[import-not-found]
from verl.trainer.ppo.v1.trainer_base import register_trainer  # type: ignore[import-not-found]
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync  # type: ignore[import-not-found]

from reward_gateway.trainers.stages import RolloutSignals, encode, token_advantages
from reward_gateway.trainers.verl import compute_workflow_score

CODES = "workflow_codes"
"""The field of a sample that carries one code a token."""

_codes: ContextVar[torch.Tensor | None] = ContextVar("workflow_codes", default=None)


@register("lean_reward")
class LeanRewardManager(NaiveRewardManager):  # type: ignore[misc]
    """verl's naive manager with our function; the environment says where the server is (`trainers.scoring`)."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, *rest: Any, **named: Any) -> None:
        configured = config.reward.get("custom_reward_function") or {}
        chosen = compute_score if configured.get("path") else compute_workflow_score
        super().__init__(config, tokenizer, chosen, *rest, **named)


class WorkflowOutput(AgentLoopOutput):  # type: ignore[misc]
    """What an agent loop returns instead of `AgentLoopOutput`, with `extra_fields={"workflow": record}`."""

    def as_dict(self) -> dict[str, Any]:
        output: dict[str, Any] = super().as_dict()
        extra = dict(output["extra_fields"])
        info = dict(extra.get("reward_extra_info", {}))
        signals = RolloutSignals.of(info.pop("workflow", None))
        if "reward_extra_info" in extra:
            extra["reward_extra_info"] = info
        extra.pop("workflow", None)
        output["extra_fields"] = extra
        codes = torch.tensor(encode(signals, len(output["responses"])), dtype=torch.int64)
        output[CODES] = codes * output["response_mask"]
        return output


@contextmanager
def codes_of_batch(codes: torch.Tensor) -> Iterator[None]:
    """Within it the estimator works on `codes` (rows, tokens), one row a rollout, in the order of the batch."""
    token = _codes.set(codes)
    try:
        yield
    finally:
        _codes.reset(token)


@register_adv_est("workflow_stage_grpo")  # type: ignore[untyped-decorator]
def workflow_stage_grpo(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    config: Any = None,
    index: np.ndarray[Any, Any] | None = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages and, as returns, r of each token's step: both (rows, tokens), of the dtype of the rewards.

    Raises RuntimeError outside of trainer mode `workflow_sync`, ValueError when `index` does not name the groups.
    """
    codes = _codes.get()
    if codes is None:
        raise RuntimeError("workflow_stage_grpo needs trainer.v1.trainer_mode=workflow_sync, which brings the stages")
    if index is None:
        raise ValueError("workflow_stage_grpo needs the uid of each sample's prompt")
    aligned = torch.zeros(token_level_rewards.shape, dtype=torch.int64)
    width = min(codes.shape[1], aligned.shape[1])
    aligned[:, :width] = codes[:, :width]
    aligned *= response_mask.cpu().to(torch.int64)
    found = token_advantages(aligned.numpy(), list(index))
    like = {"dtype": token_level_rewards.dtype, "device": token_level_rewards.device}
    return torch.as_tensor(found.advantages, **like), torch.as_tensor(found.rewards, **like)


@register_trainer("workflow_sync")
class WorkflowTrainer(PPOTrainerSync):  # type: ignore[misc]
    """verl's synchronous trainer; its batch's codes are at hand while advantages are computed."""

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=[CODES])
        if len({key.rsplit("_", 1)[0] for key in batch.keys}) != len(batch.keys):  # {uid}_{session}_{output}
            raise ValueError("workflow_sync needs agent loops that return one output: spans count in one response")
        with codes_of_batch(data.to_padded_tensor()[CODES]):
            return super()._compute_advantage(batch, metrics)
