"""mini-swe-agent ``*.traj.json``: ``{"info", "messages", "trajectory_format"}``.

Commands stand in ``tool_calls``, in ``extra.actions``, or in the one fenced block of the text. A turn that the harness
could not read is not stored: only its user message with ``extra.interrupt_type: "FormatError"`` is, and stands for the
turn.
"""

from __future__ import annotations

import re
from typing import Any

from services.process.trajectories import chat, lapses
from services.process.trajectories.model import Draft, Lapse, Step, ToolCall, finish
from services.process.trajectories.record import Place

_BLOCK = re.compile(r"```(?:[\w-]*)[ \t]*\n(.*?)\n?```", re.DOTALL)
_BROKEN_CALL = re.compile(
    r"error parsing tool call|unknown tool|missing '\w+' argument|found [2-9]|multiple actions", re.IGNORECASE
)


def fits(record: Any) -> bool:
    if isinstance(record, list):
        return chat.fits(record) and any(
            _signed(message.get("extra")) or message.get("role") == "exit" for message in record
        )
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        return False
    return str(record.get("trajectory_format", "")).startswith("mini-swe-agent") or (
        isinstance(record.get("info"), dict) and "mini_version" in record["info"]
    )


def _signed(extra: Any) -> bool:
    return isinstance(extra, dict) and ("actions" in extra or "interrupt_type" in extra)


def read(record: Any) -> list[Step]:
    drafts: list[Draft] = []
    by_call: dict[str, Draft] = {}
    for index, place in enumerate(chat.messages_of(record).items()):
        role, extra = place.get("role").word(), _extra(place)
        if role == "assistant" or place.get("object").value == "response":
            drafts.append(_turn(place, extra, index, by_call))
        elif role == "tool" or place.get("type").value == "function_call_output":
            chat.attach(place, drafts, by_call, index)
        elif extra.get("interrupt_type").word() == "FormatError":
            drafts.append(_unread(place, extra, index))
        elif role == "user" and drafts and not drafts[-1].observations:
            drafts[-1].observe(place.get("content").text())
            drafts[-1].source.append(index)
    for draft in drafts:
        lapses.mark(draft)
    return finish(drafts)


def _extra(place: Place) -> Place:
    extra = place.get("extra")
    return extra if isinstance(extra.value, dict) else Place({}, extra.pointer)


def _turn(place: Place, extra: Place, index: int, by_call: dict[str, Draft]) -> Draft:
    draft = Draft([index])
    if place.get("object").value == "response":
        for item in place.get("output").items():
            chat.assistant(item, draft, by_call)
    else:
        chat.assistant(place, draft, by_call)
    if not draft.calls:
        for action in extra.get("actions").items():
            draft.calls.append(ToolCall("bash", {"command": action.get("command").string()}))
    if not draft.calls:
        blocks = _BLOCK.findall(place.get("content").text())
        if len(blocks) == 1:
            draft.calls.append(ToolCall("bash", {"command": blocks[0]}))
    return draft


def _unread(place: Place, extra: Place, index: int) -> Draft:
    draft = Draft([index])
    for key in ("model_response", "response"):
        value = extra.get(key)
        if isinstance(value.value, str | list):
            draft.think(value.text())
    error = place.get("content").text()
    draft.observe(error)
    actions = extra.get("n_actions").value
    if (isinstance(actions, int) and actions > 1) or _BROKEN_CALL.search(error):
        draft.lapse = Lapse.PARSE_FAILURE
    return draft
