"""Terminus-2's raw answers, which an ATIF record holds instead of tool calls in ``raw_content`` mode.

JSON ``{"analysis", "plan", "commands": [{"keystrokes", "duration"}], "task_complete"}`` with or without text around
it, or the XML variant ``<response><analysis/><plan/><commands><keystrokes duration="1">...</keystrokes></commands>
<task_complete>true</task_complete></response>``.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from services.process.trajectories.model import ToolCall

_DURATION = re.compile(r"duration\s*=\s*[\"']?([0-9.]+)")
_COMPLETE = re.compile(r"<task_complete>\s*true\s*</task_complete>", re.IGNORECASE)
_OPENINGS = 50  # braces tried as the start of the JSON object


def raw_calls(text: str) -> list[ToolCall] | None:
    """The calls of a raw answer (possibly none), or None when the text is no answer of Terminus-2."""
    if "<commands" in text or "<keystrokes" in text or "<task_complete" in text:
        calls = [_keystrokes(_unescape(body), _duration(head)) for head, body in _elements(text)]
        return calls + _completion(_COMPLETE.search(text) is not None)
    answer = _object(text)
    if answer is None:
        return None
    commands = answer["commands"]
    calls = [
        _keystrokes(command["keystrokes"], command.get("duration"))
        for command in (commands if isinstance(commands, list) else [])
        if isinstance(command, dict) and isinstance(command.get("keystrokes"), str)
    ]
    complete = answer.get("task_complete")
    return calls + _completion(complete is True or str(complete).lower() in ("true", "1", "yes"))


def _elements(text: str) -> Iterator[tuple[str, str]]:
    """Attributes and body of each ``<keystrokes>`` element. Linear, however many are left open."""
    for part in text.split("</keystrokes>")[:-1]:
        _, opening, rest = part.rpartition("<keystrokes")
        head, closing, body = rest.partition(">")
        if opening and closing:
            yield head, body


def _object(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_OPENINGS):
        if start < 0:
            return None
        try:
            value, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and "commands" in value:
            return value
        start = text.find("{", start + 1)
    return None


def _keystrokes(keystrokes: str, duration: Any) -> ToolCall:
    return ToolCall("bash_command", {"keystrokes": keystrokes, "duration": duration})


def _completion(complete: bool) -> list[ToolCall]:
    return [ToolCall("mark_task_complete")] if complete else []


def _duration(head: str) -> float | None:
    found = _DURATION.search(head)
    try:
        return float(found.group(1)) if found else None
    except ValueError:
        return None


def _unescape(body: str) -> str:
    return html.unescape(body) if "&" in body else body
