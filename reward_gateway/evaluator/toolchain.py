"""Which Lean a model was trained to predict, and which one the workers run."""

from __future__ import annotations

from collections.abc import Sequence

from services.contracts.evaluator import EvaluatorModel

_PREFIXES = ("leanprover/lean4:", "v")


def other_lean(models: Sequence[EvaluatorModel], leans: Sequence[str]) -> list[EvaluatorModel]:
    """Models that declare a Lean and not the one that every worker runs; none while no worker is known."""
    return [
        model
        for model in models
        if model.toolchain is not None and not all(same_lean(model.toolchain, lean) for lean in leans)
    ]


def same_lean(one: str, other: str) -> bool:
    """Whether two toolchains are one: `4.28.0-pre+<commit>` is `leanprover/lean4:v4.28.0-pre`; commits must agree where
    both say theirs."""
    (version, commit), (other_version, other_commit) = _parts(one), _parts(other)
    agree = not commit or not other_commit or commit.startswith(other_commit) or other_commit.startswith(commit)
    return version == other_version and agree


def _parts(toolchain: str) -> tuple[str, str]:
    for prefix in _PREFIXES:
        toolchain = toolchain.removeprefix(prefix)
    version, _, commit = toolchain.partition("+")
    return version, commit
