"""Labelled programs as examples: of `lean-reward label`, or of `lean-reward label export`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from gpu_evaluator.feedback.verdict import judge_trace, seen_text
from gpu_evaluator.training.records import RecordError, read_lines
from services.contracts.outcomes import Verdict


@dataclass(frozen=True, slots=True)
class Example:
    """A program as a model is asked about it. `problem` groups the attempts on one statement."""

    problem: str
    program: str
    valid: bool
    trace: str | None
    toolchain: str


class _Line(BaseModel):
    """What both kinds of lines have."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    code: str
    program: str | None = None
    group: str | None = None
    statement: str | None = None
    verdict: Verdict
    trace: str | None = None
    toolchain: str | None = None


@dataclass
class Chosen:
    """What became of the lines. `left_out` counts them by reason."""

    valid: int = 0
    invalid: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def programs(self) -> int:
        return self.valid + self.invalid


def read_examples(paths: Iterable[Path]) -> Iterator[Example]:
    """Yield the labelled programs. Raises `RecordError`; a line without verdict or toolchain is such an error."""
    for path in paths:
        for number, line in read_lines(_Line, path):
            if line.verdict is Verdict.UNKNOWN or line.toolchain is None:
                missing = "verdict" if line.verdict is Verdict.UNKNOWN else "toolchain"
                raise RecordError(f"{path}, line {number}: no {missing}")
            program = seen_text(line.program or line.code)
            yield Example(
                problem=line.group or line.statement or line.code,
                program=program,
                valid=line.verdict is Verdict.VALID,
                trace=line.trace,
                toolchain=line.toolchain,
            )


def choose(examples: Iterable[Example], chosen: Chosen, *, traces: bool) -> Iterator[Example]:
    """Yield the examples to learn from, each program once.

    A program without any text is left out; of one with both verdicts (it was to prove two statements) the first counts.
    For the feedback model (`traces`) one without a reference trace is left out, and one whose trace stands for the
    other verdict (a proof of another statement compiles without an error): it would teach the model the opposite of
    Lean's verdict. Raises `RecordError` on examples of a second toolchain.
    """
    seen: dict[bytes, bool] = {}
    toolchain: str | None = None
    for example in examples:
        toolchain = toolchain or example.toolchain
        if example.toolchain != toolchain:
            raise RecordError(f"labels of one toolchain are needed, these have {toolchain} and {example.toolchain}")
        reason = _objection(example, seen, traces=traces)
        if reason is not None:
            chosen.left_out[reason] += 1
            continue
        chosen.valid += example.valid
        chosen.invalid += not example.valid
        yield example


def is_held_out(problem: str, share: float, seed: int) -> bool:
    """Whether a problem is among the `share` that is kept out of the training; all its attempts are.

    It depends on nothing but the three, so that more data moves no problem to the other side.
    """
    digest = hashlib.sha256(f"{seed}:{problem}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _objection(example: Example, seen: dict[bytes, bool], *, traces: bool) -> str | None:
    if not example.program.strip():
        return "empty"
    if traces and not example.trace:
        return "no_trace"
    if traces and judge_trace(example.trace or "", hit_limit=False).valid is not example.valid:
        return "trace_disagrees"
    key = hashlib.blake2b(example.program.encode(), digest_size=16).digest()
    if key in seen:
        return "duplicate" if seen[key] is example.valid else "contradiction"
    seen[key] = example.valid
    return None
