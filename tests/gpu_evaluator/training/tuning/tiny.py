"""Tiny base models and labels, and a training of them in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.gpu_evaluator import tiny_modernbert, tiny_qwen3

TRACE = "  /- <feedback>\n  -- proof state:\n  ⊢ {goal}\n  </feedback> -/\n"


def label(number: int, *, valid: bool, toolchain: str = "4.15.0") -> dict[str, Any]:
    """A line as `lean-reward label` writes it: `omega` is right and `simp` is wrong."""
    head = f"theorem t : {number} = {number} := by\n"
    tactic = "  omega\n" if valid else "  simp\n"
    state = TRACE.format(goal=f"{number} = {number}")
    error = "" if valid else "  /- <feedback>\n  -- type: error, msg: no\n  </feedback> -/"
    return {
        "id": f"{number}-{valid}",
        "group": f"p{number}",
        "code": head + tactic,
        "verdict": "valid" if valid else "invalid",
        "reason": "ok" if valid else "compile_error",
        "trace": head + state + tactic + error,
        "toolchain": toolchain,
        "elapsed_s": 0.1,
    }


def labels(count: int) -> list[dict[str, Any]]:
    """`count` problems with a right and a wrong attempt each."""
    return [label(number, valid=valid) for number in range(count) for valid in (True, False)]


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_qwen3(folder: Path) -> Path:
    tiny_qwen3.write_folder(folder, tiny_qwen3.make_weights(scale=0.05))
    return folder


def write_modernbert(folder: Path) -> Path:
    tiny_modernbert.write_folder(folder)
    return folder


def train(base: Path, files: Sequence[Path], output: Path, objective: Any, every: int = 1000, **options: Any) -> Any:
    """Run a job in this process to its end, in float32 on one thread; the summary."""
    from gpu_evaluator.training.tuning.job import Job, run
    from gpu_evaluator.training.tuning.processes import join
    from gpu_evaluator.training.tuning.progress import Bar
    from gpu_evaluator.training.tuning.recipe import make_recipe

    recipe = make_recipe(objective, **{"precision": "fp32", **options})
    with Bar(shown=False) as bar:
        return run(Job(str(base), files, output, recipe, every), join(), bar)
