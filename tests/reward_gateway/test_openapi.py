"""`docs/openapi.json` is what the code generates, covers every route, and its examples fit its schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.routing import APIRoute

from reward_gateway.app import create_app
from reward_gateway.openapi import build_document
from reward_gateway.routes.table import OPERATIONS
from services.contracts.problems import ProblemCode
from services.runtime.settings import load_settings

DOCUMENT = build_document()


def test_the_committed_document_is_current(root: Path) -> None:
    committed = json.loads((root / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert committed == DOCUMENT, "run: lean-reward openapi --output docs/openapi.json"


def test_every_route_of_the_application_is_documented_and_none_besides() -> None:
    app = create_app(load_settings(queue={"url": "redis://nowhere"}))
    served = {
        (method.lower(), route.path) for route in app.routes if isinstance(route, APIRoute) for method in route.methods
    }
    documented = {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert served == documented
    assert len(documented) == len(OPERATIONS)
    assert app.openapi() == DOCUMENT


def _contents() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            bodies = [("request", operation["requestBody"])] if "requestBody" in operation else []
            bodies += list(operation["responses"].items())
            for name, body in bodies:
                for media, content in body.get("content", {}).items():
                    found.append((f"{method} {path} {name} {media}", content))
    return found


@pytest.mark.parametrize(("name", "content"), _contents(), ids=[name for name, _ in _contents()])
def test_every_content_has_an_example_and_it_fits_the_schema(name: str, content: dict[str, Any]) -> None:
    assert content["examples"]
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    for example in content["examples"].values():
        validator.validate(example["value"])


def test_every_operation_has_an_answer_with_content_and_its_errors() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert any(status.startswith("2") for status in operation["responses"]), (method, path)
            assert "500" in operation["responses"], (method, path)
            if "requestBody" in operation:
                assert {"400", "413", "415", "422"} <= operation["responses"].keys(), (method, path)


def test_operation_ids_are_unique_and_every_problem_code_is_documented() -> None:
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert set(DOCUMENT["components"]["schemas"]["ProblemCode"]["enum"]) == {code.value for code in ProblemCode}
