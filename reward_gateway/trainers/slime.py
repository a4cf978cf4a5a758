"""slime: a custom reward model, and hooks that carry rewards of steps to the loss.

```sh
--custom-rm-path reward_gateway.trainers.slime.reward --reward-key score
--custom-reward-post-process-path reward_gateway.trainers.slime.post_process
--custom-advantage-function-path reward_gateway.trainers.slime.advantages   # with process rewards only
```

`sample.label` is the task, as in `trainers.scoring`. With `--group-rm` a whole prompt group is one batch of the server.
An agent's custom generate leaves its record in `sample.metadata["workflow"]` (see `trainers.workflow`). Without any
file, `--rm-type remote_rm --rm-url http://KEY@rewards:8000/compat/slime --reward-key score` does the same for proofs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from reward_gateway.client import ConfigurationError
from reward_gateway.trainers.scoring import ScoringOptions, candidate, outcome, scorer

_EPSILON = 1e-6  # slime's own


async def reward(args: Any, sample: Any, **_: Any) -> Any:
    """One sample's reward, or one for each of a list: a dictionary, for `--reward-key score`.

    Raises `RewardServerError` with `on_failure` `raise`, `ConfigurationError`.
    """
    if not isinstance(sample, list):
        return await _one(sample)
    if any(_record(one) is not None for one in sample):
        return list(await asyncio.gather(*map(_one, sample)))
    rows = [candidate(str(i), s.response, s.label, _group(s)) for i, s in enumerate(sample)]
    return [scored.numbered() for scored in await scorer(ScoringOptions.of_numbers()).batch(rows)]


def post_process(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[Any]]:
    """Raw rewards, and normalised ones: a number a sample, or one a token where a sample has signals of its steps.

    Groups are the samples of one `group_index`, whatever their number and order: slime's own normalisation reshapes by
    position, and takes the whole batch for one group when a sample is missing. Samples without a reward (a rollout that
    was aborted) count nowhere and get 0. Needs numpy for signals of steps.

    Raises `ConfigurationError` for agents' samples whose mask, spans or `rollout_id` cannot be theirs.
    """
    raw = [_value(sample) for sample in samples]
    plain = [0.0 if value is None else value for value in raw]
    if any(isinstance(sample.reward, dict) and "workflow" in sample.reward for sample in samples):
        return plain, _token_rewards(args, samples)
    by_std = bool(getattr(args, "grpo_std_normalization", True))
    normalised: list[Any] = [0.0] * len(raw)
    groups: dict[Any, list[int]] = {}
    for position, sample in enumerate(samples):
        if raw[position] is not None:
            groups.setdefault(sample.group_index, []).append(position)
    for members in groups.values():
        values = [plain[position] for position in members]
        mean = sum(values) / len(values)
        spread = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5 if len(values) > 1 else 0.0
        for position, value in zip(members, values, strict=True):
            normalised[position] = (value - mean) / (spread + _EPSILON) if by_std else value - mean
    return plain, normalised


def advantages(args: Any, rollout_data: dict[str, Any]) -> None:
    """Set `advantages` and `returns` to the rewards of `post_process`, one tensor of response length a sample.

    Nothing is normalised here again: `post_process` has seen whole groups, a data-parallel rank has not.
    """
    import torch

    masks = rollout_data["loss_masks"]
    values = []
    for given, mask, length in zip(rollout_data["rewards"], masks, rollout_data["response_lengths"], strict=True):
        held = torch.as_tensor(mask, dtype=torch.float32)
        row = torch.as_tensor(given, dtype=torch.float32, device=held.device)
        if row.ndim and row.shape[0] != length:
            raise ValueError(f"{row.shape[0]} rewards for a response of {length} tokens")
        values.append(row.expand(length) * held)
    rollout_data["advantages"] = values
    rollout_data["returns"] = [value.clone() for value in values]


async def _one(sample: Any) -> dict[str, Any]:
    record = _record(sample)
    if record is None:
        chosen = scorer(ScoringOptions.of_numbers())
        return (await chosen.sample(sample.response, sample.label, _group(sample))).numbered()
    from reward_gateway.trainers.workflow import rollout_signals

    chosen = scorer(ScoringOptions.of())
    signals = await rollout_signals(chosen, record, sample.response, sample.label, _group(sample))
    status = "decided" if signals.alpha is not None else "undecided"
    return {"score": float(signals.alpha or 0), "status": status, "workflow": signals.plain()}


def _token_rewards(args: Any, samples: Sequence[Any]) -> list[list[float]]:
    import numpy as np

    from reward_gateway.trainers.stages import encode, token_advantages

    width = max(sample.response_length for sample in samples)
    codes = np.zeros((len(samples), width), np.int64)
    signals = [_signals(sample.reward) for sample in samples]
    names = _rollouts(args, samples, [one.alpha for one in signals])
    steps: dict[Any, int] = {}
    for row, (name, sample, found) in enumerate(zip(names, samples, signals, strict=True)):
        length = sample.response_length
        mask = [1] * length if sample.loss_mask is None else sample.loss_mask
        if len(mask) != length:
            raise ConfigurationError(f"sample {row}: a loss_mask of {len(mask)} for a response of {length} tokens")
        try:
            coded = encode(found, length, steps.get(name, 0))
        except ValueError as error:
            raise ConfigurationError(f"sample {row}: {error}") from None
        codes[row, :length] = np.asarray(coded, np.int64) * np.asarray(mask, np.int64)
        steps[name] = steps.get(name, 0) + max(1, len(found.steps))
    per_token = token_advantages(codes, [sample.group_index for sample in samples], names).advantages
    return [per_token[row, : sample.response_length].tolist() for row, sample in enumerate(samples)]


def _signals(reward: Any) -> Any:
    """Of one sample; where it left no record, its outcome, which counts as planning."""
    from reward_gateway.trainers.stages import RolloutSignals

    if not isinstance(reward, dict):
        return RolloutSignals.of(None)
    if "workflow" in reward:
        return RolloutSignals.of(reward["workflow"])
    return RolloutSignals(outcome(reward.get("status", ""), reward.get("verdict", "")), 1)


def _rollouts(args: Any, samples: Sequence[Any], alphas: Sequence[int | None]) -> list[Any]:
    """Each sample's rollout: those of a group that share a `rollout_id` are parts of one, whose steps are numbered on.

    An id that is really the group's is refused: its rollouts would count as one.
    """
    names: list[Any] = []
    groups: dict[Any, list[Any]] = {}
    first: dict[Any, tuple[int, int]] = {}
    for row, (sample, alpha) in enumerate(zip(samples, alphas, strict=True)):
        identifier = getattr(sample, "rollout_id", None)
        name = (sample.group_index, "row", row) if identifier is None else (sample.group_index, "id", identifier)
        names.append(name)
        groups.setdefault(sample.group_index, []).append(name)
        if alpha is not None and first.setdefault(name, (row, alpha))[1] != alpha:
            raise ConfigurationError(
                f"samples {first[name][0]} and {row} share the rollout_id {identifier!r}, which is for the parts of "
                "one rollout, and differ in their outcome"
            )
    for group, members in groups.items():
        if getattr(args, "n_samples_per_prompt", 1) > 1 and len(members) > 1 and len(set(members)) == 1:
            raise ConfigurationError(
                f"all {len(members)} samples of group {group} share the rollout_id {members[0][2]!r}, which is for the "
                "parts of one rollout"
            )
    return names


def _value(sample: Any) -> float | None:
    value = sample.reward.get("score") if isinstance(sample.reward, dict) else sample.reward
    return None if value is None else float(value)


def _record(sample: Any) -> Any:
    return (sample.metadata or {}).get("workflow")


def _group(sample: Any) -> str | None:
    return None if sample.group_index is None else str(sample.group_index)
