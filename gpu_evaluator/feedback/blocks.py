"""The blocks of a feedback trace, and the source text between them.

A block is a Lean comment `/- <feedback> ... </feedback> -/` (learning-lean-feedback, Appendix D, "Block extraction and
normalization": whitespace around the tags is allowed, tags match case-insensitively, unclosed blocks are no blocks).
Everything here is linear in the length of the text, whatever a candidate wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

OPENING = "/- <feedback>"
CLOSING = "</feedback> -/"

_OPENING = re.compile(r"/-\s*<feedback>", re.IGNORECASE)
_CLOSING = re.compile(r"</feedback>\s*-/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """One complete block: its span in the trace, and what stands between the delimiters."""

    start: int
    end: int
    content: str

    @property
    def normalized(self) -> str:
        """The content with each run of white space as one space, stripped at both ends (Appendix D)."""
        return " ".join(self.content.split())


def find_blocks(trace: str) -> Iterator[Block]:
    """Yield the complete blocks of `trace` in order; the first closing delimiter after an opening one ends it."""
    position = 0
    while opening := _OPENING.search(trace, position):
        closing = _CLOSING.search(trace, opening.end())
        if closing is None:
            return
        yield Block(opening.start(), closing.end(), trace[opening.end() : closing.start()])
        position = closing.end()


def source_between(trace: str) -> Iterator[tuple[str, Block | None]]:
    """Yield (source text, the block that follows it); the last pair has no block."""
    position = 0
    for block in find_blocks(trace):
        yield trace[position : block.start], block
        position = block.end
    yield trace[position:], None


def strip_blocks(trace: str) -> str:
    """The source text of `trace`: every complete block removed, with the line that it had to itself."""
    kept: list[str] = []
    for source, block in source_between(trace):
        if kept and source.startswith("\n") and (not kept[-1] or kept[-1].endswith("\n")):
            source = source[1:]
        # The indentation before a block that starts its own line belongs to the block.
        kept.append(source if block is None else _without_last_blank_line(source))
    return "".join(kept)


def _without_last_blank_line(source: str) -> str:
    head, newline, last = source.rpartition("\n")
    return head + newline if not last.strip() else source
