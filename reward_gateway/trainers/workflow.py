"""One agent rollout in, its signals out: the call that adapters make where a trainer has no group yet. Needs numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_gateway.client import ConfigurationError
from reward_gateway.trainers.scoring import SERVER_FAILED, OnFailure, Scorer
from reward_gateway.trainers.stages import RolloutSignals, signals_of

_WANT = ["gamma", "segments", "beta"]
_GIVEN = ("alpha", "format", "plan", "workflow", "segments", "stage_rewards")


async def rollout_signals(
    scorer: Scorer, record: Mapping[str, Any], response: str, label: Any, group: str | None = None
) -> RolloutSignals:
    """Alpha, beta and gamma of the steps of one rollout.

    `record`, made by the agent loop: `trajectory` and `spans` (the tokens of each step in the response, half open),
    `general_workflow`, and of `POST /v1/trajectories/score` what is known: `alpha`, `format`, `plan`, `workflow`,
    `segments`, `stage_rewards`, `task`. Without `alpha` the outcome is the verdict on the response as a proof of
    `label`, whose group is `group` where it names none.

    Raises `RewardServerError` for refusals, and with `on_failure` `raise` for failures; otherwise the outcome is
    unknown and the rollout trains nothing. Raises `ConfigurationError` for a record without its parts and for wrong
    spans.
    """
    for name in ("trajectory", "spans", "general_workflow"):
        if record.get(name) is None:
            raise ConfigurationError(f"the workflow record of the agent loop has no `{name}`")
    stages = record["general_workflow"]
    rollout = {name: record[name] for name in _GIVEN if record.get(name) is not None}
    rollout |= {"id": "rollout", "trajectory": record["trajectory"]}
    try:
        if "alpha" not in rollout:
            rollout["alpha"] = (await scorer.sample(response, label, group)).alpha
        answer = await scorer.async_client.score_trajectories(
            {
                "group": "single",
                "task": record.get("task", ""),
                "general_workflow": list(stages),
                "deadline_s": scorer.options.deadline_s,
                "rollouts": [rollout],
                "want": _WANT,
            }
        )
    except SERVER_FAILED:
        if scorer.options.on_failure is OnFailure.RAISE:
            raise
        return RolloutSignals(None, len(stages))
    try:
        return signals_of(answer.rollouts[0], stages, record["spans"])
    except ValueError as error:
        raise ConfigurationError(f"the workflow record of the agent loop: {error}") from None
