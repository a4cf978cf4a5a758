"""The four feedback-quality metrics (learning-lean-feedback, Appendix D, equations 1 to 7) and the source audit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from gpu_evaluator.feedback.blocks import source_between, strip_blocks

_Item = TypeVar("_Item", bound=Hashable)

TOKEN = re.compile(r"\w+|[^\w\s]")
ERROR_MARKER = re.compile(r"--\s*type\s*:\s*error\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TraceQuality:
    """Agreement of one predicted trace with Lean's, each in [0, 1]."""

    block_f1: float
    anchored_block_f1: float
    token_f1: float
    error_agreement: float


class SourcePreservation(str, Enum):
    """How a trace's own source text relates to the program (Appendix B, "Source preservation")."""

    FULL = "full"
    PREFIX = "prefix"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Contents:
    blocks: Counter[str]
    anchored: Counter[tuple[int, str]]
    tokens: Counter[str]


def compare(reference: str, predicted: str) -> TraceQuality:
    """Score `predicted` against Lean's annotation of the same program (equations 3 to 6)."""
    ours, theirs = _contents(reference), _contents(predicted)
    return TraceQuality(
        block_f1=f1(ours.blocks, theirs.blocks),
        anchored_block_f1=f1(ours.anchored, theirs.anchored),
        token_f1=f1(ours.tokens, theirs.tokens),
        error_agreement=float(has_error(reference) == has_error(predicted)),
    )


def average(pairs: Iterable[tuple[str | None, str]]) -> tuple[TraceQuality, int]:
    """Mean of each metric over (reference, predicted) pairs, every program of equal weight (equation 7).

    Pairs whose reference is missing or blank are left out; the second value is how many were scored.

    Raises:
        ValueError: no pair could be scored.
    """
    scores: Sequence[TraceQuality] = [
        compare(reference, predicted) for reference, predicted in pairs if reference is not None and reference.strip()
    ]
    if not scores:
        raise ValueError("no program has a reference annotation")

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(scores)

    quality = TraceQuality(
        block_f1=mean(s.block_f1 for s in scores),
        anchored_block_f1=mean(s.anchored_block_f1 for s in scores),
        token_f1=mean(s.token_f1 for s in scores),
        error_agreement=mean(s.error_agreement for s in scores),
    )
    return quality, len(scores)


def f1(reference: Counter[_Item], predicted: Counter[_Item]) -> float:
    """F1 of two multisets: equations 1 and 2; two empty ones agree perfectly."""
    size = reference.total() + predicted.total()
    return 2 * (reference & predicted).total() / size if size else 1.0


def has_error(trace: str) -> bool:
    """Whether an error marker stands anywhere in the text, inside a complete block or not (Appendix D)."""
    return ERROR_MARKER.search(trace) is not None


def audit_source(program: str, trace: str) -> SourcePreservation:
    """Compare the source that a trace copied with the program, trailing white space of lines aside."""
    wanted, copied = _lines(program), _lines(strip_blocks(trace))
    if copied == wanted:
        return SourcePreservation.FULL
    return SourcePreservation.PREFIX if copied == wanted[: len(copied)] else SourcePreservation.OTHER


def _contents(trace: str) -> _Contents:
    blocks: Counter[str] = Counter()
    anchored: Counter[tuple[int, str]] = Counter()
    tokens: Counter[str] = Counter()
    lines_before = 0
    line_is_open = False  # the current line already holds source text, and has been counted
    for source, block in source_between(trace):
        for number, line in enumerate(source.split("\n")):
            line_is_open = line_is_open and number == 0
            if line.strip() and not line_is_open:
                lines_before += 1
                line_is_open = True
        if block is not None:
            content = block.normalized
            blocks[content] += 1
            anchored[lines_before, content] += 1
            tokens.update(TOKEN.findall(content))
    return _Contents(blocks, anchored, tokens)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines
