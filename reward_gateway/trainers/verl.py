"""verl: the functions of `reward.custom_reward_function`, one sample a call.

```sh
reward.custom_reward_function.path=pkg://reward_gateway.trainers.verl
reward.custom_reward_function.name=compute_score
+reward.custom_reward_function.reward_kwargs.url=http://rewards:8000
```

`ground_truth` is the task: a statement, or `{"statement", "header"?, "group"?, "group_size"?}`. Every answer has the
same keys, all numbers, as verl takes the keys from the first sample and averages them. What needs verl itself (a reward
manager, the advantage estimator, the agent-loop output) is in `verl_plugin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_gateway.trainers.scoring import Scored, ScoringOptions, scorer

_OF_VERL = frozenset({"reward_router_address", "reward_model_tokenizer"})


async def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, float]:
    """The reward of one response; `options` as in `ScoringOptions`.

    Raises `RewardServerError` with `on_failure` `raise` (verl then fails the prompt's group), `ConfigurationError`.
    """
    chosen = scorer(ScoringOptions.of_numbers(**_ours(options)))
    return _numbers(await chosen.sample(solution_str, ground_truth, _group(data_source, extra_info)))


async def compute_workflow_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """`compute_score` for agents whose loop left a record in `extra_fields["workflow"]` (see `trainers.workflow`).

    Adds the key `workflow`, from which `verl_plugin.WorkflowOutput` makes one code a token. The score is the outcome,
    alpha; 0 where it is unknown, and then the rollout gets no advantage. Needs numpy.
    """
    from reward_gateway.trainers.workflow import rollout_signals

    group = _group(data_source, extra_info)
    record = (extra_info or {}).get("workflow")
    chosen = scorer(ScoringOptions.of(**_ours(options)))
    if record is None:
        from reward_gateway.trainers.stages import RolloutSignals

        signals = RolloutSignals((await chosen.sample(solution_str, ground_truth, group)).alpha, 1)
    else:
        signals = await rollout_signals(chosen, record, solution_str, ground_truth, group)
    return {
        "score": float(signals.alpha or 0),
        "lean_known": float(signals.alpha is not None),
        "workflow": signals.plain(),
    }


def _ours(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _OF_VERL}


def _group(data_source: str, extra_info: Mapping[str, Any] | None) -> str | None:
    """The row of the data set, for labels that name no group."""
    index = (extra_info or {}).get("index")
    return None if index is None else f"{data_source}-{index}"[:256]


def _numbers(scored: Scored) -> dict[str, float]:
    score: float = scored.numbered()["score"]
    return {
        "score": score,
        "acc": float(scored.verdict == "valid"),
        "lean_undecided": float(scored.status == "undecided"),
        "lean_failed": float(scored.status == "failed"),
    }
