"""`GET /healthz` and `GET /readyz`."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from services.contracts.base import Wire
from services.contracts.evaluator import EvaluatorModel
from services.contracts.lean import EngineIdentity
from services.contracts.problems import Missing


class Health(Wire):
    """The process is alive."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


class LeanReadiness(Wire):
    workers: int = Field(description="Worker processes that announce themselves.")
    engines: int = Field(description="Their engines.")
    ready: int = Field(description="Of these, warm.")
    identities: tuple[EngineIdentity, ...] = Field(
        description="Which Lean they run; verdicts of one are not reused for another."
    )


class EvaluatorState(Wire):
    """What the gateway knows of its evaluators."""

    configured: int = Field(description="URLs in the settings.")
    ready: int = Field(description="Of these, able to predict now.")
    models: tuple[EvaluatorModel, ...] = Field(default=(), description="What their predictions come from.")


class Readiness(Wire):
    """Whether the server can score now (200) or not (503), and what is missing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "status": "ready",
                    "missing": [],
                    "warnings": [],
                    "lean": {
                        "workers": 1,
                        "engines": 2,
                        "ready": 2,
                        "identities": [
                            {"engine": "embedded", "toolchain": "4.28.0-pre", "environment": "5f1d0e"},
                        ],
                    },
                }
            ]
        }
    )

    status: Literal["ready", "not_ready"]
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), description="What works but deserves a look.")
    lean: LeanReadiness | None = Field(default=None, description="Null when the queue cannot be reached.")
    evaluator: EvaluatorState | None = Field(default=None, description="Null where none is configured.")
