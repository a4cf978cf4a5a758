"""Command lines of vLLM servers that the evaluator starts itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

_SPECULATION = ("--speculative", "--spec")
_LOOKUP_MOST, _LOOKUP_LEAST = 4, 2


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """How one model is served. `memory`: part of the GPU's; `gpu`: what CUDA_VISIBLE_DEVICES shall be."""

    command: tuple[str, ...]
    model: str
    context: int
    memory: float
    gpu: str
    quantization: str = "none"
    sleeps: bool = False
    arguments: tuple[str, ...] = field(default=())

    @property
    def environment(self) -> dict[str, str]:
        # The routes for sleeping exist in development mode only; its servers listen on the loopback interface.
        development = {"VLLM_SERVER_DEV_MODE": "1"} if self.sleeps else {}
        return {"CUDA_VISIBLE_DEVICES": self.gpu, "VLLM_NO_USAGE_STATS": "1", **development}


def gate_command(plan: ServerPlan, port: int) -> list[str]:
    """The gate's server, which never speculates. Raises `ValueError` when an argument would have it do so."""
    for argument in plan.arguments:
        if argument.startswith(_SPECULATION):
            raise ValueError(f"the gate must not speculate: {argument}")
    return _command(plan, port)


def feedback_command(plan: ServerPlan, port: int, speculation: int) -> list[str]:
    """The feedback model's server, which drafts `speculation` tokens at a time from the program that it copies."""
    return [*_command(plan, port), *_speculation(speculation)]


def _command(plan: ServerPlan, port: int) -> list[str]:
    model = [plan.model] if plan.command[-1] == "serve" else ["--model", plan.model]
    return [
        *plan.command,
        *model,
        f"--served-model-name={PurePath(plan.model).name}",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--max-model-len={plan.context}",
        f"--gpu-memory-utilization={plan.memory:g}",
        "--scheduling-policy=priority",
        *([] if plan.quantization == "none" else [f"--quantization={plan.quantization}"]),
        *(["--enable-sleep-mode"] if plan.sleeps else []),
        *plan.arguments,
    ]


def _speculation(tokens: int) -> Sequence[str]:
    if not tokens:
        return ()
    config = {
        "method": "ngram",
        "num_speculative_tokens": tokens,
        "prompt_lookup_max": _LOOKUP_MOST,
        "prompt_lookup_min": _LOOKUP_LEAST,
    }
    return (f"--speculative-config={json.dumps(config)}",)
