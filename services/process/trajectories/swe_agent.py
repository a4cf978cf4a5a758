"""SWE-agent ``*.traj``: ``{"environment", "trajectory": [{action, observation, response, thought, state}], "history",
"info"}``.

One action string a step; empty means that the turn did not act. A first word that is one of SWE-agent's own tools is
that tool, anything else is bash.
"""

from __future__ import annotations

import shlex
from typing import Any

from services.process.trajectories import lapses
from services.process.trajectories.model import Draft, Step, ToolCall, finish
from services.process.trajectories.record import Place

_TOOLS = {
    "submit", "submit_review", "exit_forfeit", "exit_cost", "exit_context", "exit_format", "exit_error", "skip",
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "append", "search_dir", "search_file",
    "find_file", "str_replace_editor", "view_image", "filemap", "undo_edit",
}  # fmt: skip


def fits(record: Any) -> bool:
    items = record.get("trajectory") if isinstance(record, dict) else record
    return (
        isinstance(items, list)
        and bool(items)
        and all(isinstance(i, dict) and isinstance(i.get("action"), str) and "source" not in i for i in items)
    )


def read(record: Any) -> list[Step]:
    root = Place(record)
    items = root.get("trajectory") if isinstance(record, dict) else root
    return finish(_step(place, index) for index, place in enumerate(items.items()))


def _step(place: Place, index: int) -> Draft:
    draft = Draft([index])
    action = place.get("action").string()
    draft.think(place.get("thought").text() or place.get("response").text())
    if action.strip():
        draft.calls.append(_call(action))
    if place.get("observation").value is not None:
        draft.observe(place.get("observation").text())
    lapses.mark(draft)
    return draft


def _call(action: str) -> ToolCall:
    name, _, rest = action.strip().partition(" ")
    name = name.split("\n", 1)[0]
    if name not in _TOOLS:
        return ToolCall("bash", {"command": action})
    arguments: dict[str, Any] = {"input": rest} if rest else {}
    if name == "str_replace_editor":
        try:
            words = shlex.split(rest)
        except ValueError:
            words = rest.split()
        if words:
            arguments["command"] = words[0]
    return ToolCall(name, arguments)
