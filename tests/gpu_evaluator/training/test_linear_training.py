"""Training of the linear model: it learns, it is deterministic, its file is read back as it was written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpu_evaluator.commands import app
from gpu_evaluator.engines.base import EngineFault
from gpu_evaluator.engines.linear.engine import LinearGate
from gpu_evaluator.engines.linear.model import load
from gpu_evaluator.training.linear import Example, measure, split, train
from gpu_evaluator.training.synthetic import attempts

EXAMPLES = [
    Example(f"theorem t{n} : {n} = {n} := by\n  {tactic}\n", tactic == "omega", f"p{n}")
    for n in range(40)
    for tactic in ("omega", "exact foo")
]


def test_it_learns_what_stands_on_the_lines() -> None:
    kept, held = split(EXAMPLES)
    assert {e.problem for e in kept}.isdisjoint(e.problem for e in held)
    counts = measure(train(kept, "4.15.0"), held)
    assert counts.gate_right == counts.feedback_right == counts.programs == 16


def test_training_is_deterministic_and_the_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    train(EXAMPLES, "4.15.0").save(path)
    again, read = train(EXAMPLES, "4.15.0"), load(path)
    assert read.toolchain == "4.15.0"
    assert read.programs == len(EXAMPLES)
    assert np.array_equal(read.gate.weights, again.gate.weights.astype(np.float16).astype(np.float32))


def test_one_verdict_alone_teaches_nothing() -> None:
    with pytest.raises(ValueError, match="both"):
        train([e for e in EXAMPLES if e.valid], "4.15.0")


@pytest.mark.parametrize("content", [b"", b"no model", b"PK\x03\x04 broken"])
async def test_a_file_that_is_no_model_is_a_fault_of_the_engine(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(EngineFault, match="no linear model"):
        await LinearGate(path).start()
    with pytest.raises(EngineFault, match="no linear model"):
        await LinearGate(tmp_path / "missing.npz").start()


def test_the_command_trains_on_labels_and_refuses_two_toolchains(tmp_path: Path) -> None:
    def line(number: int, example: Example, toolchain: str) -> str:
        verdict = "valid" if example.valid else "invalid"
        return json.dumps(
            {"id": str(number), "group": example.problem, "code": example.program, "verdict": verdict, "reason": "ok"}
            | {"trace": "", "toolchain": toolchain, "elapsed_s": 0.1}
        )

    labels, mixed, model = tmp_path / "labels.jsonl", tmp_path / "mixed.jsonl", tmp_path / "model.npz"
    labels.write_text("\n".join(line(n, e, "4.15.0") for n, e in enumerate(EXAMPLES)))
    mixed.write_text("\n".join(line(n, e, f"4.{n % 2}") for n, e in enumerate(EXAMPLES)))
    answer = CliRunner().invoke(app, ["train", "linear", str(labels), "-o", str(model), "--json"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["held_out"]["programs"] == 16
    assert load(model).toolchain == "4.15.0"
    refused = CliRunner().invoke(app, ["train", "linear", str(mixed), "-o", str(model)])
    assert refused.exit_code == 2
    assert "one toolchain" in refused.output
    (tmp_path / "empty.jsonl").write_text("\n")
    empty = CliRunner().invoke(app, ["train", "linear", str(tmp_path / "empty.jsonl"), "-o", str(model)])
    assert empty.exit_code == 2
    assert "no label in" in empty.output


def test_synthetic_programs_are_different_and_always_the_same() -> None:
    first, second = list(attempts(300)), list(attempts(300))
    assert first == second
    assert len({attempt.code for attempt in first}) == 300
