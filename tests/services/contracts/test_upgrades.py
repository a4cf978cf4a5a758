"""Processes of two releases during an upgrade: what an old one makes of what a new one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from services.contracts.evaluator import EvaluatorModel, Prediction
from services.contracts.lean import (
    CONTRACT,
    CheckTask,
    EngineIdentity,
    LeanJob,
    LeanOutcome,
    Message,
    Position,
    Severity,
    WorkerInfo,
)
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import ScoreOptions

IDENTITY = EngineIdentity(engine="e", toolchain="t", environment="v")
TRAVELLERS: list[BaseModel] = [
    LeanJob(key="k", task=CheckTask(code="theorem t : True := trivial")),
    LeanOutcome(
        status=LeanStatus.OK,
        verdict=Verdict.INVALID,
        reason=Reason.COMPILE_ERROR,
        messages=(Message(severity=Severity.ERROR, data="no", pos=Position(line=1, column=2)),),
        identity=IDENTITY,
    ),
    WorkerInfo(worker="w", identity=IDENTITY, engines=2, ready=1),
    Prediction(id="c", verdict=Verdict.VALID, reason=Reason.OK, gate=0.9),
    EvaluatorModel(name="m"),
]


def with_news(value: Any) -> Any:
    """The same JSON with a field more in every object, as a newer release could write it."""
    if isinstance(value, dict):
        return {**{name: with_news(part) for name, part in value.items()}, "added_later": {"x": [1]}}
    return [with_news(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("said", TRAVELLERS, ids=lambda said: type(said).__name__)
def test_a_newer_releases_fields_are_left_out(said: BaseModel) -> None:
    newer = json.dumps(with_news(json.loads(said.model_dump_json())))
    assert type(said).model_validate_json(newer) == said


def test_a_job_by_rules_that_a_worker_does_not_know_is_not_judged() -> None:
    job = json.loads(TRAVELLERS[0].model_dump_json())
    assert LeanJob.model_validate({**job, "needs": CONTRACT}).needs == CONTRACT
    with pytest.raises(ValidationError, match="this process knows"):
        LeanJob.model_validate({**job, "needs": CONTRACT + 1})


def test_a_job_of_an_older_release_needs_the_first_version() -> None:
    job = json.loads(TRAVELLERS[0].model_dump_json())
    del job["needs"]
    assert LeanJob.model_validate(job).needs == 1


def test_callers_are_still_told_of_what_nobody_knows() -> None:
    with pytest.raises(ValidationError):
        ScoreOptions.model_validate({"added_later": 1})
