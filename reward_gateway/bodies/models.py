"""A request's body as a model of the contract."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from reward_gateway.bodies.faults import Faults
from reward_gateway.bodies.json_text import parse_json

Model = TypeVar("Model", bound=BaseModel)


def parse_model(model: type[Model], text: str) -> Model:
    """Raises `ProblemError`: malformed JSON (400), or JSON that does not fit the contract (422)."""
    value = parse_json(text)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = Faults()
        faults.add_validation(error)
        faults.check()
        raise AssertionError("a validation error without faults") from error
