"""Chat messages with tool calls: ``[{role, content, tool_calls}, {role: "tool", tool_call_id, content}]`` or
``{"messages"}``.

Also read: Anthropic content blocks (``tool_use``, ``tool_result``), Responses-API items (``function_call``,
``function_call_output``, ``reasoning``) and calls that stand in the text between ``<tool_call>`` tags, as a trainer
that decodes tokens itself produces them. Each assistant message is a step; Responses-API items of one response are
one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from services.process.trajectories import lapses
from services.process.trajectories.model import Draft, Lapse, Step, ToolCall, finish
from services.process.trajectories.record import Place

ROLES = {"system", "developer", "user", "assistant", "tool", "function", "exit"}
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_ITEMS = {"function_call", "function_call_output", "reasoning"}


def messages_of(record: Any) -> Place:
    root = Place(record)
    return root.get("messages") if isinstance(record, dict) else root


def fits(record: Any) -> bool:
    messages = record.get("messages") if isinstance(record, dict) else record
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(m, dict) and (Place(m).get("role").word() in ROLES or Place(m).get("type").word() in _ITEMS)
            for m in messages
        )
    )


def read(record: Any) -> list[Step]:
    drafts: list[Draft] = []
    by_call: dict[str, Draft] = {}
    open_response = False  # the last item belongs to a Responses-API turn that still grows
    for index, place in enumerate(messages_of(record).items()):
        role, item = place.get("role").word(), place.get("type").word()
        if item == "function_call_output" or role in ("tool", "function"):
            attach(place, drafts, by_call, index)
            open_response = False
        elif role == "assistant" or item in ("function_call", "reasoning"):
            if not (open_response and item and drafts):
                drafts.append(Draft([]))
            open_response = item in _ITEMS or item == "message"
            drafts[-1].source.append(index)
            assistant(place, drafts[-1], by_call)
        elif role == "user":
            results = [p for p in parts(place.get("content")) if p.get("type").word() == "tool_result"]
            for result in results:
                attach(result, drafts, by_call, index)
            if not results and drafts and not drafts[-1].calls and not drafts[-1].observations:
                drafts[-1].observe(place.get("content").text())
            open_response = False
        elif role not in ROLES:
            raise place.get("role").fail("expected a role: system, user, assistant or tool")
    for draft in drafts:
        lapses.mark(draft)
    return finish(drafts)


def parts(content: Place) -> list[Place]:
    """The parts of a message's content that are objects."""
    return [p for p in content.items() if isinstance(p.value, dict)] if isinstance(content.value, list) else []


def assistant(place: Place, draft: Draft, by_call: dict[str, Draft]) -> None:
    """Adds an assistant message, or one Responses-API item, to its turn."""
    draft.think(place.get("reasoning_content").text())
    if place.get("type").word() == "reasoning":
        draft.think(place.get("summary").text())
    content = place.get("content").text()
    draft.think(content)
    before = len(draft.calls)
    if place.get("type").word() == "function_call":
        draft.calls.append(ToolCall(place.get("name").name(), place.get("arguments").arguments(), _call_id(place)))
    draft.calls += [call.call() for call in place.get("tool_calls").items()]
    if isinstance(place.get("function_call").value, dict):
        draft.calls.append(place.get("function_call").call())
    for part in parts(place.get("content")):
        if part.get("type").word() == "tool_use":
            draft.calls.append(ToolCall(part.get("name").name(), part.get("input").arguments(), _call_id(part)))
        elif part.get("type").word() == "thinking":
            draft.think(part.get("thinking").text())
    if len(draft.calls) == before and "<tool_call>" in content:
        _tagged_calls(content, draft)
    for call in draft.calls[before:]:
        if call.id:
            by_call[call.id] = draft


def attach(place: Place, drafts: list[Draft], by_call: dict[str, Draft], index: int) -> None:
    """Gives a tool's answer to the turn that called it; without an id, to the last turn."""
    identity = _call_id(place)
    draft = by_call.get(identity or "") or (drafts[-1] if drafts else None)
    if draft is None:
        return
    output = place.get("output") if place.get("content").value is None else place.get("content")
    draft.observe(output.text(), identity)
    draft.source.append(index)


def _call_id(place: Place) -> str | None:
    ids = (place.get(key).value for key in ("tool_call_id", "tool_use_id", "call_id", "id"))
    return next((i for i in ids if isinstance(i, str)), None)


def _tagged_calls(content: str, draft: Draft) -> None:
    for match in _TAGGED.finditer(content):
        try:
            call = json.loads(match.group(1))
        except (ValueError, RecursionError):
            call = None
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            draft.calls.append(Place(call).call())
    if not draft.calls:
        draft.lapse = Lapse.PARSE_FAILURE
