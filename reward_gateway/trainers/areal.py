"""AReaL: a synchronous, picklable reward function for `RLVRWorkflow(reward_fn=lean_reward, ...)`.

The data set's rows carry `statement` (None: any theorem counts) and optionally `header`. AReaL runs it in worker
processes and gives each call 15 s, four times, and then silently 0: raise the timeout of its `AsyncRewardWrapper` above
100 s, within which the server answers a sample, plus `LEAN_REWARD_CLIENT_PATIENCE_S`, so that this function decides
what a failure is worth.
"""

from __future__ import annotations

from typing import Any

from reward_gateway.client import ConfigurationError
from reward_gateway.trainers.scoring import ScoringOptions, scorer, text_of


def lean_reward(
    prompt: Any, completions: Any, prompt_ids: Any = None, completion_ids: Any = None, **data: Any
) -> float:
    """One sample's reward. Raises `RewardServerError` with `on_failure` `raise`, `ConfigurationError`."""
    if "statement" not in data:
        raise ConfigurationError(
            f"the row has no `statement`, only {', '.join(sorted(data)) or 'nothing'}: "
            "None there says that any theorem counts"
        )
    label = {"statement": data["statement"], "header": data.get("header")}
    reward: float = scorer(ScoringOptions.of_numbers()).sample_now(text_of(completions), label).numbered()["score"]
    return reward
