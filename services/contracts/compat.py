"""Shapes of other programs: slime, OpenRLHF, and the clients of the Kimina Lean Server.

Requests ignore what they do not know, because we do not own them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from services.contracts.base import MAX_CANDIDATES, MAX_TIMEOUT_S, LeanText, Name, Wire
from services.contracts.outcomes import Reason, Source, Verdict


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


def _number_as_name(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


GroupName = Annotated[Name, BeforeValidator(_number_as_name)]
"""A name, or a whole number: what trainers count their groups with."""


def _distinct(ids: Sequence[str | int], what: str) -> None:
    seen: set[str] = set()
    for given in map(str, ids):
        if given in seen:
            raise ValueError(f"the {what} must be distinct: {given[:64]!r} is there twice")
        seen.add(given)


class TaskReference(_Foreign):
    """What a trainer puts in `label`: this object, its JSON text, or the statement alone as a string.

    `group` names the prompt; samples of one group are scored together. With `group_size` the first ones wait a while
    for the rest.
    """

    statement: LeanText | None = None
    header: LeanText | None = None
    group: GroupName | None = None
    group_size: Annotated[int, Field(ge=1, le=65_536)] | None = None


class SlimeRequest(_Foreign):
    """What slime's `remote_rm` sends: one sample."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "prompt": "Prove it.",
                    "response": "```lean\ntheorem t : 1 + 1 = 2 := rfl\n```",
                    "label": {"statement": "theorem t : 1 + 1 = 2", "group": "p17", "group_size": 8},
                }
            ]
        }
    )

    prompt: JsonValue = None
    response: str
    label: JsonValue = None


class SampleReward(Wire):
    """The answer to one sample. `score` is a number always; `status` says when it is only the configured fallback."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "score": 1.0,
                    "status": "decided",
                    "verdict": "valid",
                    "source": "lean",
                    "reason": "ok",
                    "detail": None,
                }
            ]
        }
    )

    score: float
    status: Literal["decided", "fallback"] = Field(
        description="`fallback`: nobody decided, for no fault of the sample."
    )
    verdict: Verdict
    source: Source
    reason: Reason
    detail: str | None = None


class OpenRLHFRequest(_Foreign):
    """What OpenRLHF's remote reward call sends: lists of one length."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": ["Prove it.```lean\ntheorem t : 1 + 1 = 2 := rfl\n```"],
                    "prompts": ["Prove it."],
                    "labels": ["theorem t : 1 + 1 = 2"],
                }
            ]
        }
    )

    query: Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_CANDIDATES)]
    prompts: tuple[str, ...]
    labels: tuple[JsonValue, ...]

    @model_validator(mode="after")
    def _one_length(self) -> OpenRLHFRequest:
        if not len(self.query) == len(self.prompts) == len(self.labels):
            raise ValueError(f"{len(self.query)} query, {len(self.prompts)} prompts and {len(self.labels)} labels")
        return self


class OpenRLHFResponse(Wire):
    """Rewards, scores from 0 to 1, and numbers for its log."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rewards": [1.0], "scores": [1.0], "extra_logs": {"fallback": [0.0], "lean": [1.0]}}]
        }
    )

    rewards: tuple[float, ...]
    scores: tuple[Annotated[float, Field(ge=0, le=1)], ...]
    extra_logs: dict[str, tuple[float, ...]]


class KiminaSnippet(_Foreign):
    id: str
    code: str


InfoTree = Literal["full", "tactics", "original", "substantive"]


class KiminaCheckRequest(_Foreign):
    """`POST /api/check`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"snippets": [{"id": "c1", "code": "theorem t : 1 + 1 = 2 := rfl"}], "timeout": 30}]
        }
    )

    snippets: Annotated[tuple[KiminaSnippet, ...], Field(min_length=1, max_length=MAX_CANDIDATES)]
    timeout: Annotated[int, Field(gt=0, le=int(MAX_TIMEOUT_S))] = 30
    debug: bool = False
    reuse: bool = Field(default=True, description="Makes no difference: every check starts from a clean environment.")
    infotree: InfoTree | None = Field(
        default=None, description="Whatever is asked for: the tactics and their goals, where the engine reports them."
    )

    @model_validator(mode="after")
    def _distinct_ids(self) -> KiminaCheckRequest:
        _distinct([snippet.id for snippet in self.snippets], "ids")
        return self


class KiminaResult(_Foreign):
    """Exactly one of `error` and `response`, the raw object of the Lean REPL."""

    id: str
    time: float
    error: str | None = None
    response: dict[str, JsonValue] | None = None
    diagnostics: dict[str, JsonValue] | None = None


class KiminaCheckResponse(_Foreign):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"results": [{"id": "c1", "time": 0.02, "response": {"env": 0}}]}]}
    )

    results: tuple[KiminaResult, ...]


class KiminaCode(_Foreign):
    custom_id: str | int
    proof: str | None = None
    code: str | None = None

    @model_validator(mode="after")
    def _one_program(self) -> KiminaCode:
        if self.proof is None and self.code is None:
            raise ValueError("`proof` or `code` is needed")
        return self

    @property
    def program(self) -> str:
        return self.proof if self.proof is not None else self.code or ""


class KiminaVerifyRequest(_Foreign):
    """`POST /verify`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"codes": [{"custom_id": "c1", "proof": "theorem t : 1 + 1 = 2 := rfl"}]}]}
    )

    codes: Annotated[tuple[KiminaCode, ...], Field(min_length=1, max_length=MAX_CANDIDATES)]
    timeout: Annotated[int, Field(gt=0, le=int(MAX_TIMEOUT_S))] = 300
    infotree_type: InfoTree | None = None
    disable_cache: bool = False

    @model_validator(mode="after")
    def _distinct_ids(self) -> KiminaVerifyRequest:
        _distinct([code.custom_id for code in self.codes], "custom_ids")
        return self


class KiminaVerifyResult(_Foreign):
    custom_id: str
    error: str | None = None
    response: dict[str, JsonValue] | None = None


class KiminaVerifyResponse(_Foreign):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"results": [{"custom_id": "c1", "response": {"env": 0, "time": 0.02}}]}]}
    )

    results: tuple[KiminaVerifyResult, ...]


class KiminaHealth(Wire):
    """`GET /health`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"
