"""The Lean program in a model's response.

Rules, in order:

1. Thoughts do not count: ``<think>...</think>`` (``<thinking>`` too), an unclosed ``<think>`` to the end, and all
   before a ``</think>`` that nothing opened, since chat templates often open it in the prompt.
2. The last block fenced as ``lean``, ``lean4`` or ``tactics`` that is not blank. Fences are CommonMark's (three or more
   backticks or tildes, closed by as many or more of the same kind), indented or not, with anything after the language.
   Where models are sloppy the rules are lenient: the opening fence may end a line of prose, the closing one a line of
   code, a new Lean fence ends a block that was never closed, and the end of the response closes the last one.
3. Else the last fenced block without a language that declares a theorem.
4. Else, without any fence, the whole text when it declares a theorem and begins with a Lean command.

Blocks in other languages are never code, whatever they hold. The text of a block is kept as it is, line endings
included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from services.proofs.lexical import SPACE
from services.proofs.macros import COMMAND_START
from services.proofs.masking import mask
from services.proofs.precheck import declares_theorem

LEAN_LANGUAGES = frozenset({"lean", "lean4", "tactics"})


class Origin(str, Enum):
    """Which rule found the code."""

    LEAN_FENCE = "lean_fence"
    PLAIN_FENCE = "plain_fence"
    BARE = "bare"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Extraction:
    """The code of a response, or None where it holds none."""

    code: str | None
    origin: Origin
    closed: bool = True  # False: the block's closing fence is missing, so the response was probably cut off


@dataclass(frozen=True, slots=True)
class _Block:
    language: str
    text: str
    closed: bool


_tag = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE).finditer
_opening = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^\n]*)").fullmatch
_language = re.compile(r"[A-Za-z0-9_+#.-]*").match


def extract_code(response: str) -> Extraction:
    """The code of `response` by the rules above; time linear in its length, any text is accepted."""
    fenced = False
    plain: _Block | None = None
    lean: _Block | None = None
    segments = list(_spoken(response))
    for segment in segments:
        for block in _blocks(segment):
            fenced = True
            if not block.text.strip():
                continue
            if block.language in LEAN_LANGUAGES:
                lean = block
            elif not block.language:
                plain = block if declares_theorem(mask(block.text).text) else plain
    if lean:
        return Extraction(lean.text, Origin.LEAN_FENCE, lean.closed)
    if plain:
        return Extraction(plain.text, Origin.PLAIN_FENCE, plain.closed)
    if not fenced:
        for segment in reversed(segments):
            if _is_lean(segment):
                return Extraction(segment, Origin.BARE)
    return Extraction(None, Origin.NONE)


def _spoken(response: str) -> Iterator[str]:
    """The parts of the response that are no thoughts."""
    parts: list[str] = []
    start: int | None = 0  # of the part that is being read; None inside of a thought
    for tag in _tag(response):
        if tag.group(1):
            if start is not None:
                parts.clear()  # a thought that was opened in the prompt
            start = tag.end()
        elif start is not None:
            parts.append(response[start : tag.start()])
            start = None
    if start is not None:
        parts.append(response[start:])
    return iter(parts)


def _blocks(text: str) -> Iterator[_Block]:
    if "```" not in text and "~~~" not in text:
        return
    fence, language = "", ""
    lines: list[str] = []
    for line in text.split("\n"):
        opening = _opens(line)
        if not fence:
            if opening:
                fence, language = opening
                lines = []
            continue
        if opening and opening[1] in LEAN_LANGUAGES and opening[0].startswith(fence):
            yield _Block(language, "\n".join(lines), closed=False)
            fence, language = opening
            lines = []
            continue
        code = _closes(line, fence, language)
        if code is None:
            lines.append(line)
            continue
        if code:
            lines.append(code)
        yield _Block(language, "\n".join([*lines, ""]), closed=True)
        fence = ""
    if fence:
        yield _Block(language, "\n".join(lines), closed=False)


def _opens(line: str) -> tuple[str, str] | None:
    """The fence and the language of a line that opens a block."""
    if "```" not in line and "~~~" not in line:
        return None
    opening = _opening(line.rstrip())
    if opening:
        fence, info = opening.groups()
        if "`" in info and fence[0] == "`":
            return None  # an inline code span
        found = _language(info)
        return fence, found.group().lower() if found else ""
    return _opens_after_prose(line)


def _opens_after_prose(line: str) -> tuple[str, str] | None:
    stripped = line.rstrip().lower()
    for language in LEAN_LANGUAGES:
        if stripped.endswith("`" + language):
            prose = stripped[: -len(language)]
            ticks = len(prose) - len(prose.rstrip("`"))
            return ("`" * ticks, language) if ticks >= 3 else None
    return None


def _closes(line: str, fence: str, language: str) -> str | None:
    """None for a line inside of the block, else the code on the line that closes it."""
    stripped = line.rstrip()
    rest = stripped.rstrip(fence[0])
    if len(stripped) - len(rest) < len(fence):
        return None
    if rest.strip():
        # Models glue the closing fence to the last line of code; other languages may mean what they say.
        return rest if language in LEAN_LANGUAGES else None
    return ""


def _is_lean(text: str) -> bool:
    masked = mask(text).text
    start = masked.lstrip(SPACE)
    return declares_theorem(masked) and COMMAND_START.match(start) is not None
