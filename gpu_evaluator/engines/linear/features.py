"""Programs as hashed features, line by line."""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BITS = 15
WIDTH = 1 << BITS

_TOKEN = re.compile(r"[^\W\d][\w'.!?]*|\d+|[^\w\s]")
_PROOF = re.compile(r":=|\bby\b")
_HEAD_LINES, _TAIL_LINES = 256, 768
_LINE_TOKENS = 64
_STATEMENT_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Features:
    """Features of a program: `columns[i]`, an index below `WIDTH`, occurs on line `lines[i]` (0-based) of the program.

    Each feature has the weight `1 / sqrt(len(columns))`, so that the norm of a program does not grow with its length.
    """

    columns: NDArray[np.int64]
    lines: NDArray[np.int64]

    @property
    def weight(self) -> float:
        return 1.0 / math.sqrt(max(1, len(self.columns)))


def read_features(program: str, *, crosses: bool) -> Features:
    """Tokens and pairs of neighbours on each line; with `crosses`, also each line's tokens with the statement's.

    Of a program of more than 1,024 lines the first 256 and the last 768 are read, and of a line its first 64 tokens.
    """
    statement = _statement(program) if crosses else ()
    columns: list[int] = []
    lines: list[int] = []
    for number, line in _kept_lines(program):
        tokens = _tokens(line, _LINE_TOKENS)
        names = [f"t {token}" for token in tokens]
        names += [f"b {left} {right}" for left, right in zip(["^", *tokens], [*tokens, "$"], strict=True)]
        names += [f"x {token} {other}" for token in dict.fromkeys(tokens[:8]) for other in statement]
        columns += [zlib.crc32(name.encode("utf-8", "surrogatepass")) % WIDTH for name in names]
        lines += [number] * len(names)
    return Features(np.array(columns, dtype=np.int64), np.array(lines, dtype=np.int64))


def _kept_lines(program: str) -> Iterator[tuple[int, str]]:
    lines = program.split("\n")
    numbers = range(len(lines))
    if len(lines) > _HEAD_LINES + _TAIL_LINES:
        kept = [*numbers[:_HEAD_LINES], *numbers[-_TAIL_LINES:]]
    else:
        kept = list(numbers)
    return ((number, lines[number]) for number in kept)


def _statement(program: str) -> tuple[str, ...]:
    """The distinct tokens, and pairs of neighbours, of the program before its first proof."""
    proof = _PROOF.search(program)
    tokens = _tokens(program[: proof.start()] if proof else program, _STATEMENT_TOKENS)
    pairs = (f"{left} {right}" for left, right in itertools.pairwise(tokens))
    return tuple(dict.fromkeys([*tokens, *pairs]))


def _tokens(text: str, limit: int) -> list[str]:
    tokens = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        tokens.append("#" if token.isdigit() and len(token) > 1 else token)
        if len(tokens) == limit:
            break
    return tokens
