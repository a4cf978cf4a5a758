"""Every wire model refuses what it does not know, and its own examples are valid."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from pydantic import BaseModel, ValidationError

import services.contracts
from services.contracts.base import Wire
from services.contracts.evaluator import EvaluatorModel, EvaluatorReadiness, Prediction
from services.contracts.problems import ProblemCode
from services.contracts.proofs import Candidate, ScoreRequest
from services.contracts.trajectories import PenaltiesRequest, Rollout


def _models() -> list[type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    for info in pkgutil.iter_modules(services.contracts.__path__):
        module = importlib.import_module(f"services.contracts.{info.name}")
        found |= {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
        }
    return list(found.values())


@pytest.mark.parametrize("model", _models(), ids=lambda m: m.__name__)
def test_examples_are_valid_and_survive_a_round_trip(model: type[BaseModel]) -> None:
    for example in model.model_json_schema().get("examples", []):
        value = model.model_validate(example)
        assert model.model_validate_json(value.model_dump_json()) == value


BETWEEN_RELEASES = (Prediction, EvaluatorModel, EvaluatorReadiness)  # see test_upgrades.py


@pytest.mark.parametrize(
    "model", [m for m in _models() if issubclass(m, Wire) and m not in BETWEEN_RELEASES], ids=lambda m: m.__name__
)
def test_wire_models_forbid_unknown_fields(model: type[BaseModel]) -> None:
    assert model.model_json_schema()["additionalProperties"] is False


@pytest.mark.parametrize(
    "candidate",
    [
        {"id": "a"},
        {"id": "a", "code": "x", "response": "y"},
        {"id": "", "code": "x"},
        {"id": "a\n", "code": "x"},
        {"id": "a" * 257, "code": "x"},
        {"id": "a", "code": 7},
        {"id": "a", "code": "x", "statement": "t\x00"},
        {"id": "a", "code": "x", "header": "h" * 65_537},
        {"id": "a", "code": "x", "unknown": 1},
    ],
)
def test_malformed_candidates_are_refused(candidate: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Candidate.model_validate(candidate)


def test_a_candidates_program_may_be_any_text() -> None:
    for text in ("", "\x00", "\ud800"):
        assert Candidate.model_validate({"id": "a", "code": text}).code == text


@pytest.mark.parametrize(
    "field",
    [
        {"priority": 101},
        {"priority": True},
        {"priority": "1"},
        {"lean_timeout_s": 0},
        {"lean_timeout_s": float("nan")},
        {"cutoff": {"deadline_s": float("inf")}},
        {"cutoff": {"policy": "later"}},
        {"prepend_header": 1},
        {"batch_id": "a/b"},
        {"rewards": {"valid": None}},
        {"mode": "fast"},
    ],
)
def test_malformed_options_are_refused(field: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScoreRequest.model_validate({"candidates": [{"id": "a", "code": "x"}], **field})


def test_alpha_is_one_or_minus_one_and_excludes_a_proof() -> None:
    for alpha in (0, 2, 0.5, "yes"):
        with pytest.raises(ValidationError):
            Rollout.model_validate({"id": "r", "alpha": alpha, "trajectory": []})
    with pytest.raises(ValidationError):
        Rollout.model_validate({"id": "r", "alpha": 1, "proof": {"id": "p", "code": ""}, "trajectory": []})


def test_penalties_take_one_shape() -> None:
    for body in ({}, {"trajectory": [], "trajectories": []}, {"format": "chat", "trajectories": [{"id": "a"}]}):
        with pytest.raises(ValidationError):
            PenaltiesRequest.model_validate(body)


def test_every_problem_code_has_a_status_a_summary_and_a_type() -> None:
    for code in ProblemCode:
        assert 400 <= code.status < 600
        assert code.summary
        assert code.uri == f"urn:lean-reward:problem:{code.value}"


@pytest.mark.parametrize(
    ("verdict", "reason", "feedback"),
    [
        ("invalid", "infrastructure", None),
        ("invalid", "lean_timeout", None),
        ("invalid", "ok", None),
        ("valid", "gate_rejected", None),
        ("unknown", "ok", None),
        ("unknown", "feedback_error", None),
        ("valid", "ok", "invalid"),
    ],
)
def test_a_prediction_that_contradicts_itself_is_refused(verdict: str, reason: str, feedback: str | None) -> None:
    with pytest.raises(ValidationError):
        Prediction.model_validate({"id": "c", "verdict": verdict, "reason": reason, "feedback": feedback})
