"""The OpenAPI document, made from the table of operations and the models of the contract."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from reward_gateway.operations import Answer, Operation
from reward_gateway.routes.table import OPERATIONS
from services.contracts.jobs import JobProgress
from services.contracts.problems import PROBLEM_MEDIA_TYPE, Problem, ProblemCode

_REF = "#/components/schemas/{model}"
_TAGS = {
    "proofs": "Rewards for proof attempts, exact from Lean or predicted.",
    "jobs": "The same in the background.",
    "trajectories": "Step rewards for agents: alpha, beta, gamma.",
    "evaluator": "The learned evaluator.",
    "compat": "Shapes that other programs send.",
    "operation": "Health and metrics.",
}


def build_document() -> dict[str, Any]:
    """The whole document; equal for equal code."""
    models = {model for operation in OPERATIONS for model in _models(operation)} | {Problem, JobProgress}
    ordered = sorted(models, key=lambda model: model.__name__)
    inputs: list[tuple[Any, Literal["validation"]]] = [(model, "validation") for model in ordered]
    _, definitions = models_json_schema(inputs, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lean-reward",
            "version": version("lean-reward"),
            "description": "Rewards for GRPO: proofs checked by Lean, agents scored step by step. "
            "Every error is an RFC 9457 problem document whose `code` is stable.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "Where keys are set."}},
        },
    }


def _models(operation: Operation) -> set[type[BaseModel]]:
    answered = {answer.model for answers in operation.answers.values() for answer in answers if answer.model}
    return answered | ({operation.request} if operation.request else set())


def _operation(operation: Operation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{operation.path}".translate(_NAME),
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {
            **{str(status): _answers(answers) for status, answers in operation.answers.items()},
            **_problems(operation),
        },
    }
    if operation.description:
        document["description"] = operation.description
    if operation.parameters:
        document["parameters"] = [dict(parameter) for parameter in operation.parameters]
    if operation.request is not None:
        document["requestBody"] = {
            "required": True,
            "content": {"application/json": _content(Answer("", operation.request))},
        }
    if operation.key:
        document["security"] = [{"key": []}, {}]
    return document


_NAME = str.maketrans({"/": "_", "{": None, "}": None, ".": "_"})


def _answers(answers: tuple[Answer, ...]) -> dict[str, Any]:
    first = answers[0]
    document: dict[str, Any] = {"description": " ".join(answer.description for answer in answers)}
    if not first.media_type:
        return document
    contents = [_content(answer) for answer in answers]
    merged = contents[0]
    if len(contents) > 1:
        merged = {
            "schema": {"oneOf": [content["schema"] for content in contents]},
            "examples": {name: value for content in contents for name, value in content["examples"].items()},
        }
    document["content"] = {first.media_type: merged}
    return document


def _content(answer: Answer) -> dict[str, Any]:
    if answer.model is None:
        return {"schema": {"type": "string"}, "examples": {"example": {"value": answer.example}}}
    name = answer.model.__name__
    examples = [answer.example] if answer.example is not None else answer.model.model_json_schema()["examples"]
    return {
        "schema": {"$ref": _REF.format(model=name)},
        "examples": {f"{name}{i or ''}": {"value": example} for i, example in enumerate(examples)},
    }


def _problems(operation: Operation) -> dict[str, Any]:
    codes = dict.fromkeys(operation.problems)
    if operation.key:
        codes[ProblemCode.UNAUTHENTICATED] = None
    codes[ProblemCode.INTERNAL_ERROR] = None
    documents: dict[str, Any] = {}
    for code in sorted(codes, key=lambda code: (code.status, code.value)):
        status = str(code.status)
        if int(status) in operation.answers:
            continue
        entry = documents.setdefault(
            status,
            {
                "description": "",
                "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}, "examples": {}}},
            },
        )
        entry["description"] = f"{entry['description']} {code.summary}.".strip()
        entry["content"][PROBLEM_MEDIA_TYPE]["examples"][code.value] = {"value": _example(code)}
    return documents


def _example(code: ProblemCode) -> dict[str, Any]:
    problem = Problem(
        type=code.uri,
        title=code.summary,
        status=code.status,
        code=code,
        detail=code.summary,
        instance="urn:lean-reward:request:8f14e45fceea167a",
        retry_after_s=5 if code.status in (429, 503) else None,
    )
    example: dict[str, Any] = problem.model_dump(mode="json", exclude_defaults=True)
    return example
