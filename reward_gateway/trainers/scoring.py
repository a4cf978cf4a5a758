"""What every adapter shares: how to reach the server, and what a sample is worth when the server failed.

Set by the same variables as the settings `client.*` (`lean-reward settings` explains them), because a trainer's workers
are configured by their environment: `LEAN_REWARD_CLIENT_URL`, `_KEY`, `_DEADLINE_S`, `_PATIENCE_S`, `_ON_FAILURE`,
`_FALLBACK`. Arguments of an adapter win over the environment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from reward_gateway.client import AsyncClient, Client, RewardServerError
from services.contracts.compat import SampleReward
from services.contracts.outcomes import Verdict
from services.contracts.proofs import CandidateResult

_PREFIX = "LEAN_REWARD_CLIENT_"


class ConfigurationError(ValueError):
    """The adapter cannot be used as it is configured; the message names the variable or argument."""


class OnFailure(str, Enum):
    """What a sample is given when the server failed, for no fault of the sample."""

    RAISE = "raise"
    FALLBACK = "fallback"
    UNSCORABLE = "unscorable"


@dataclass(frozen=True)
class ScoringOptions:
    """`deadline_s`: cutoff of a batch. `patience_s`: so long the server may be away. Both in seconds."""

    url: str = "http://127.0.0.1:8000"
    key: str | None = None
    deadline_s: float = 90.0
    patience_s: float = 600.0
    on_failure: OnFailure = OnFailure.RAISE
    fallback: float | None = None

    def __post_init__(self) -> None:
        if self.on_failure is OnFailure.FALLBACK and self.fallback is None:
            raise ConfigurationError("on_failure is `fallback`, which needs a `fallback`: no reward is a silent zero")

    @classmethod
    def of(cls, **given: Any) -> ScoringOptions:
        """From the environment, arguments first. Raises `ConfigurationError`."""
        chosen: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            text = given[name] if given.get(name) is not None else os.environ.get(_PREFIX + name.upper())
            if text is None or text == "":
                continue
            try:
                chosen[name] = _READERS.get(name, str)(text)
            except ValueError:
                raise ConfigurationError(f"{name} ({_PREFIX}{name.upper()}) cannot be {text!r}") from None
        if unknown := set(given) - set(cls.__dataclass_fields__):
            raise ConfigurationError(f"there is no option {', '.join(sorted(unknown))}")
        return cls(**chosen)


_READERS: dict[str, Any] = {"deadline_s": float, "patience_s": float, "on_failure": OnFailure, "fallback": float}


@dataclass(frozen=True)
class Scored:
    """One sample's reward. `score` None: unscorable. `status`: `decided`, `undecided` (by Lean, in time), `failed`."""

    score: float | None
    status: str
    verdict: str
    reason: str

    def numbered(self) -> dict[str, Any]:
        """For trainers that want a dictionary with a number under `score` and the same keys every time."""
        if self.score is None:
            raise ConfigurationError("on_failure `unscorable` is for trainers that know samples without a reward")
        return {"score": self.score, "status": self.status, "verdict": self.verdict, "reason": self.reason}


class Scorer:
    """Scores samples and batches by one policy of failures. Picklable; usable after a fork and from any event loop."""

    def __init__(self, options: ScoringOptions) -> None:
        self.options = options
        reach: dict[str, Any] = {"key": options.key, "patience_s": options.patience_s}
        self.client = Client(options.url, **reach)
        self.async_client = AsyncClient(options.url, **reach)

    async def sample(self, response: str, label: Any) -> Scored:
        """One sample; the server joins it with those that arrive at the same time. Raises `RewardServerError`."""
        try:
            return self.of_sample(await self.async_client.score_sample(response, label))
        except RewardServerError as error:
            return self.failed(error)

    def sample_now(self, response: str, label: Any) -> Scored:
        """`sample` for callers without an event loop."""
        try:
            return self.of_sample(self.client.score_sample(response, label))
        except RewardServerError as error:
            return self.failed(error)

    async def batch(self, candidates: Sequence[dict[str, Any]]) -> list[Scored]:
        """Candidates of `POST /v1/proofs/score` that the caller holds together. Raises `RewardServerError`."""
        if not candidates:
            return []
        try:
            answer = await self.async_client.score_proofs(candidates, deadline_s=self.options.deadline_s)
        except RewardServerError as error:
            return [self.failed(error)] * len(candidates)
        return [self.of_result(result) for result in answer.results]

    def of_sample(self, reward: SampleReward) -> Scored:
        if reward.status == "decided":
            return Scored(reward.score, "decided", reward.verdict.value, reward.reason.value)
        return self._undecided(reward.score, reward.reason.value)

    def of_result(self, result: CandidateResult) -> Scored:
        if result.reward is not None:
            return Scored(result.reward, "decided", result.verdict.value, result.reason.value)
        return self._undecided(0.0, result.reason.value)

    def failed(self, error: RewardServerError) -> Scored:
        """The sample's share of a failure of the server. Raises `error` unless the policy says otherwise."""
        if self.options.on_failure is OnFailure.RAISE:
            raise error
        return Scored(self.options.fallback, "failed", Verdict.UNKNOWN.value, type(error).__name__)

    def _undecided(self, server_score: float, reason: str) -> Scored:
        """Nobody decided in time, which no retry changes: training goes on, with the fallback where there is one."""
        score = server_score if self.options.on_failure is OnFailure.RAISE else self.options.fallback
        if self.options.on_failure is OnFailure.UNSCORABLE:
            score = None
        return Scored(score, "undecided", Verdict.UNKNOWN.value, reason)


@lru_cache(maxsize=16)
def scorer(options: ScoringOptions) -> Scorer:
    """One scorer, and with it one pool of connections, for each set of options."""
    return Scorer(options)


def candidate(identifier: str, response: str, label: Any, group: str | None = None) -> dict[str, Any]:
    """A candidate from a label: a statement, or an object with `statement` and `header`; None: any theorem counts."""
    task = label if isinstance(label, dict) else {"statement": label}
    fields = {"statement": task.get("statement"), "header": task.get("header"), "group": group or task.get("group")}
    return {"id": identifier, "response": response, **{k: v for k, v in fields.items() if v is not None}}


def text_of(completion: Any) -> str:
    """The text of a completion: a string, a message, or messages whose assistant turns are taken together."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, dict):
        content = completion.get("content") or ""
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return "\n".join(text_of(m) for m in completion if not isinstance(m, dict) or m.get("role") in (None, "assistant"))
