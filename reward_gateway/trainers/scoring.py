"""What every adapter shares: how to reach the server, and what a sample is worth when the server failed.

Set by the same variables as the settings `client.*` (`lean-reward settings` explains them), because a trainer's workers
are configured by their environment: `LEAN_REWARD_CLIENT_URL`, `_KEY`, `_DEADLINE_S`, `_PATIENCE_S`, `_ON_FAILURE`,
`_FALLBACK`. Arguments of an adapter win over the environment.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from reward_gateway.client import (
    AsyncClient,
    Client,
    ConfigurationError,
    DeadlineExceeded,
    Overloaded,
    RewardServerError,
    Unavailable,
    Unreachable,
    checked_key,
    checked_url,
)
from services.contracts.base import MAX_DEADLINE_S
from services.contracts.compat import SampleReward, TaskReference
from services.contracts.outcomes import Reason, Verdict
from services.contracts.proofs import CandidateResult

_PREFIX = "LEAN_REWARD_CLIENT_"

SERVER_FAILED = (Overloaded, Unavailable, Unreachable, DeadlineExceeded)
"""What `on_failure` is for. A refusal, or an answer of something else, stays an error until somebody mends it."""


class OnFailure(str, Enum):
    """What a sample is given when the server failed, for no fault of the sample."""

    RAISE = "raise"
    FALLBACK = "fallback"
    UNSCORABLE = "unscorable"


@dataclass(frozen=True)
class ScoringOptions:
    """`deadline_s`: cutoff of a batch. `patience_s`: so long the server may be away. Both in seconds."""

    url: str = "http://127.0.0.1:8000"
    key: str | None = field(default=None, repr=False)
    deadline_s: float = 90.0
    patience_s: float = 600.0
    on_failure: OnFailure = OnFailure.RAISE
    fallback: float | None = None

    def __post_init__(self) -> None:
        checked_url(self.url)
        checked_key(self.key)
        for name in ("deadline_s", "patience_s"):
            seconds = getattr(self, name)
            if not 0 < seconds <= MAX_DEADLINE_S:
                raise ConfigurationError(f"{_named(name)} cannot be {seconds}: above 0 and at most {MAX_DEADLINE_S:g}")
        if self.on_failure is OnFailure.FALLBACK and self.fallback is None:
            raise ConfigurationError("on_failure is `fallback`, which needs a `fallback`: no reward is a silent zero")
        if self.fallback is not None and not math.isfinite(self.fallback):
            raise ConfigurationError(f"{_named('fallback')} cannot be {self.fallback}: a finite number is needed")

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
                raise ConfigurationError(f"{_named(name)} cannot be {text!r}") from None
        if unknown := set(given) - set(cls.__dataclass_fields__):
            raise ConfigurationError(f"there is no option {', '.join(sorted(unknown))}")
        return cls(**chosen)

    @classmethod
    def of_numbers(cls, **given: Any) -> ScoringOptions:
        """`of`, for trainers to which every sample needs a number. Raises `ConfigurationError`."""
        options = cls.of(**given)
        if options.on_failure is OnFailure.UNSCORABLE:
            raise ConfigurationError(
                f"{_named('on_failure')} cannot be `unscorable` here: this trainer needs a number for every sample, "
                "so `raise`, or `fallback` with a `fallback`"
            )
        return options


def _named(option: str) -> str:
    return f"{option} ({_PREFIX}{option.upper()})"


_READERS: dict[str, Any] = {"deadline_s": float, "patience_s": float, "on_failure": OnFailure, "fallback": float}


@dataclass(frozen=True)
class Scored:
    """One sample's reward. `score` None: unscorable. `status`: `decided`, `undecided` (by Lean, in time), `failed`."""

    score: float | None
    status: str
    verdict: str
    reason: str

    @property
    def alpha(self) -> int | None:
        """The outcome; None where nobody decided."""
        return outcome(self.status, self.verdict)

    def numbered(self) -> dict[str, Any]:
        """For trainers that want a dictionary with the same keys every time; see `ScoringOptions.of_numbers`."""
        return {"score": self.score, "status": self.status, "verdict": self.verdict, "reason": self.reason}


class Scorer:
    """Scores samples and batches by one policy of failures. Picklable; usable after a fork and from any event loop."""

    def __init__(self, options: ScoringOptions) -> None:
        self.options = options
        reach: dict[str, Any] = {"key": options.key, "patience_s": options.patience_s}
        self.client = Client(options.url, **reach)
        self.async_client = AsyncClient(options.url, **reach)

    async def sample(self, response: str, label: Any, group: str | None = None) -> Scored:
        """One sample; the server joins it with those that arrive at the same time. `label` as in `task_of`.

        Raises `RewardServerError`, `ConfigurationError`.
        """
        task = _sent(task_of(label, group))
        try:
            return self.of_sample(await self.async_client.score_sample(response, task))
        except SERVER_FAILED as error:
            return self.failed(error)

    def sample_now(self, response: str, label: Any) -> Scored:
        """`sample` for callers without an event loop."""
        task = _sent(task_of(label))
        try:
            return self.of_sample(self.client.score_sample(response, task))
        except SERVER_FAILED as error:
            return self.failed(error)

    async def batch(self, candidates: Sequence[dict[str, Any]]) -> list[Scored]:
        """Candidates of `POST /v1/proofs/score` that the caller holds together. Raises `RewardServerError`."""
        if not candidates:
            return []
        try:
            answer = await self.async_client.score_proofs(candidates, deadline_s=self.options.deadline_s)
        except SERVER_FAILED as error:
            return [self.failed(error)] * len(candidates)
        return [self.of_result(result) for result in answer.results]

    def of_sample(self, reward: SampleReward) -> Scored:
        """Raises `Unavailable` as `failed` does: a fallback of the server's own is no answer to our `on_failure`."""
        if reward.status == "decided":
            return Scored(reward.score, "decided", reward.verdict.value, reward.reason.value)
        if reward.reason is Reason.INFRASTRUCTURE:
            return self.failed(_missing(reward.detail))
        return self._undecided(reward.score, reward.reason.value)

    def of_result(self, result: CandidateResult) -> Scored:
        """Raises `Unavailable` as `failed` does."""
        if result.reward is not None:
            return Scored(result.reward, "decided", result.verdict.value, result.reason.value)
        if result.fault_of_the_server:
            return self.failed(_missing(f"sample {result.id} of the batch: {result.detail or result.reason}"))
        return self._undecided(0.0, result.reason.value)

    def failed(self, error: RewardServerError) -> Scored:
        """The sample's share of a failure of the server. Raises `error` unless the policy says otherwise."""
        if self.options.on_failure is OnFailure.RAISE:
            raise error
        return Scored(self._stand_in(), "failed", Verdict.UNKNOWN.value, type(error).__name__)

    def _undecided(self, server_score: float, reason: str) -> Scored:
        """Nobody decided in time, which no retry changes: training goes on, with the fallback where there is one."""
        score = server_score if self.options.on_failure is OnFailure.RAISE else self._stand_in()
        return Scored(score, "undecided", Verdict.UNKNOWN.value, reason)

    def _stand_in(self) -> float | None:
        return self.options.fallback if self.options.on_failure is OnFailure.FALLBACK else None


@lru_cache(maxsize=16)
def scorer(options: ScoringOptions) -> Scorer:
    """One scorer, and with it one pool of connections, for each set of options."""
    return Scorer(options)


def outcome(status: str, verdict: str) -> int | None:
    """alpha of a sample that was scored: -1 or 1, None where nobody decided."""
    if status != "decided":
        return None
    return 1 if verdict == Verdict.VALID.value else -1


def candidate(identifier: str, response: str, label: Any, group: str | None = None) -> dict[str, Any]:
    """A candidate from a label as in `task_of`. Raises `ConfigurationError`."""
    task = task_of(label, group).model_dump(exclude={"group_size"}, exclude_none=True)
    return {"id": identifier, "response": response, **task}


def task_of(label: Any, group: str | None = None) -> TaskReference:
    """The task that a label names: a statement, `{"statement", "header"?, "group"?, "group_size"?}`, or its JSON text.

    A statement of None, not a missing one, says that any theorem counts. `group` is for labels that name none. Raises
    `ConfigurationError` for a label that names no task: a misspelt column or key would reward any theorem.
    """
    fields = label
    if isinstance(label, str):
        fields = {"statement": label}
        if label.lstrip().startswith(("{", "[")):  # no statement of Lean starts like this
            try:
                fields = json.loads(label)
            except ValueError as error:
                raise ConfigurationError(f"the label {label!r:.120} starts like JSON and is none: {error}") from None
    statement = fields.get("statement", "") if isinstance(fields, Mapping) else ""
    if isinstance(statement, str) and not statement.strip():
        raise ConfigurationError(
            f"the label {label!r:.120} names no statement: a statement or an object with the key `statement` is "
            'needed; {"statement": null} says that any theorem counts'
        )
    try:
        task = TaskReference.model_validate(dict(fields))
    except ValidationError as error:
        faults = "; ".join(f"`{'.'.join(map(str, fault['loc']))}`: {fault['msg']}" for fault in error.errors())
        raise ConfigurationError(f"the label {label!r:.120}: {faults}") from None
    return task if task.group is not None else task.model_copy(update={"group": group})


def _sent(task: TaskReference) -> dict[str, Any]:
    return {**task.model_dump(exclude_none=True), "statement": task.statement}


def _missing(detail: str | None) -> Unavailable:
    return Unavailable(503, None, f"a part of the server was not there to decide a sample: {detail}")


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
