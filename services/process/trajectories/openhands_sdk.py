"""OpenHands SDK events: ``[event]`` or ``{"events": [...]}``, each with its ``kind``.

``ActionEvent``s of one ``llm_response_id`` are one turn, and so is an agent's ``MessageEvent``. An action of null was
a call that the harness could not execute: a parse failure. ``ObservationEvent`` and ``AgentErrorEvent`` answer a
``tool_call_id``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.process.trajectories import lapses
from services.process.trajectories.model import Draft, Lapse, Step, ToolCall, finish
from services.process.trajectories.record import Place

_ANSWERS = {"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"}


def fits(record: Any) -> bool:
    events = record.get("events") if isinstance(record, dict) else record
    return (
        isinstance(events, list)
        and bool(events)
        and all(isinstance(e, dict) for e in events)
        and any(isinstance(e.get("kind"), str) and "source" in e for e in events)
    )


def read(record: Any) -> list[Step]:
    root = Place(record)
    events = root.get("events") if isinstance(record, dict) else root
    drafts: list[Draft] = []
    responses: dict[str, Draft] = {}
    by_call: dict[str, Draft] = {}
    for index, event in enumerate(events.items()):
        kind = event.get("kind").word()
        if kind == "ActionEvent" or (kind == "MessageEvent" and event.get("source").value == "agent"):
            response = event.get("llm_response_id").value
            draft = responses.get(response) if isinstance(response, str) else None
            if draft is None:
                draft = Draft([])
                drafts.append(draft)
                if isinstance(response, str):
                    responses[response] = draft
            draft.source.append(index)
            if kind == "ActionEvent":
                _act(event, draft, by_call)
            else:
                _say(event, draft)
        elif kind in _ANSWERS and drafts:
            call_id = event.get("tool_call_id").value
            draft = by_call.get(call_id) if isinstance(call_id, str) else None
            draft = draft or drafts[-1]
            draft.observe(_answer(event), call_id if isinstance(call_id, str) else None)
            draft.source.append(index)
    for draft in drafts:
        if draft.calls:
            draft.lapse = None
        lapses.mark(draft)
    return finish(drafts)


def _say(event: Place, draft: Draft) -> None:
    message = event.get("llm_message")
    if message.value is not None:
        draft.think(message.get("reasoning_content").text())
        draft.think(message.get("content").text())


def _act(event: Place, draft: Draft, by_call: dict[str, Draft]) -> None:
    draft.think(event.get("reasoning_content").text())
    draft.think(event.get("thought").text())
    call_id = event.get("tool_call_id").value
    if isinstance(call_id, str):
        by_call[call_id] = draft
    action = event.get("action")
    if action.value is None:
        draft.lapse = Lapse.PARSE_FAILURE
        return
    arguments: Mapping[str, Any] = {k: v for k, v in action.object().items() if k != "kind"}
    call = event.get("tool_call")
    if not arguments and isinstance(call.value, dict):
        arguments = call.get("arguments").arguments()
    draft.calls.append(
        ToolCall(event.get("tool_name").name(), arguments, call_id if isinstance(call_id, str) else None)
    )


def _answer(event: Place) -> str:
    observation = event.get("observation")
    if isinstance(observation.value, dict):
        for key in ("content", "output", "text"):
            text = observation.get(key).text()
            if text:
                return text
        return ""
    return observation.text() or event.get("error").text()
