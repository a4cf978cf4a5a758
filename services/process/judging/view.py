"""What a judge is shown of a stage: actions and observations, in chunks of bounded size. No thoughts: they are claims.

The stage's own steps come whole but for the middles of very long observations; the few steps before it come clipped,
as context. Later steps are not shown. A token is estimated as three bytes of UTF-8, which is on the safe side for code
and terminal output with the tokenisers of current models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.process.judging.transcript import Transcript, normalised, typed
from services.process.trajectories import Step

CHUNK_TOKENS = 16_384
_BYTES_PER_TOKEN = 3
_MAX_CHUNKS = 8
_CONTEXT_STEPS, _CONTEXT_CHARACTERS = 12, 600
_COMMAND_CHARACTERS = 4_000
_LEAST, _MOST = 400, 12_000  # characters of an observation


def estimated_tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive text of one observation, as it was shown."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is shown as one block of data; quotes may come from `pieces` (normalised) alone."""

    text: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A heading and some text, and the observation that it is part of, if any."""

    heading: str
    text: str
    step: int | None


def chunks_of(transcript: Transcript, visit: Sequence[int], chunk_tokens: int = CHUNK_TOKENS) -> list[Chunk]:
    """The view of a stage visit, given its steps in order. At least one chunk; a visit that never comes gives none."""
    if not visit:
        return []
    budget = chunk_tokens * _BYTES_PER_TOKEN
    room = _MAX_CHUNKS * budget // (2 * len(visit))
    limit = max(_LEAST, min(_MOST, room))
    entries: list[_Entry] = []
    for step in transcript.steps[max(0, visit[0] - _CONTEXT_STEPS) : visit[0]]:
        entries += _entries(step, "before the stage", _CONTEXT_CHARACTERS, _CONTEXT_CHARACTERS)
    for index in visit:
        entries += _entries(transcript.steps[index], "of the stage", min(limit, _COMMAND_CHARACTERS), limit)
    return list(_packed(entries, budget))


def _entries(step: Step, where: str, command_limit: int, limit: int) -> Iterator[_Entry]:
    name = f"Step {step.index} ({where})"
    if not step.calls:
        yield _Entry(f"{name}: no action", "", None)
        return
    for call in step.calls:
        action = " [...] ".join(_clipped(_sendable(typed(call)), command_limit))
        yield _Entry(f"{name}, action {call.name[:100]!r}:", action, None)
    for seen in step.observations:
        parts = _clipped(_sendable(seen.text), limit)
        for number, part in enumerate(parts):
            cut = "" if not number else f" (after {len(seen.text) - sum(map(len, parts))} characters left out)"
            yield _Entry(f"{name}, observation{cut}:", part, step.index)


def _sendable(text: str) -> str:
    """Lone surrogates cannot be sent; everything else stays as it is."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _clipped(text: str, limit: int) -> list[str]:
    """The text, or its first and last part."""
    if len(text) <= limit:
        return [text]
    return [text[: limit // 2], text[len(text) - limit // 2 :]]


def _packed(entries: Sequence[_Entry], budget: int) -> Iterator[Chunk]:
    """Fill chunks of at most `budget` bytes; an entry that does not fit goes on in the next one."""
    lines: list[str] = []
    pieces: list[Piece] = []
    used = 0
    for entry in entries:
        rest = entry.text
        while True:
            room = budget - used - len(entry.heading.encode()) - 2
            part = _fitting(rest, max(0, room))
            if lines and (room < 0 or (len(part) < len(rest) and room < budget // 2)):
                yield Chunk("\n".join(lines), tuple(pieces))
                lines, pieces, used = [], [], 0
                continue
            lines += [entry.heading, part]
            used += len(entry.heading.encode()) + len(part.encode()) + 2
            if entry.step is not None and part:
                pieces.append(Piece(entry.step, normalised(part)))
            rest = rest[len(part) :]
            if not rest:
                break
            yield Chunk("\n".join(lines), tuple(pieces))
            lines, pieces, used = [], [], 0
    if lines:
        yield Chunk("\n".join(lines), tuple(pieces))


def _fitting(text: str, room: int) -> str:
    """The longest beginning of `text` within `room` bytes, at least one character."""
    data = text.encode()
    if len(data) <= room:
        return text
    return data[: max(room, 4)].decode("utf-8", "ignore") or text[:1]
