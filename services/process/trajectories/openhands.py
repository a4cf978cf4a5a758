"""OpenHands V0 event lists: ``[event]``, ``[[action, observation]]`` or ``{"history": [...]}``.

An event with ``action`` and ``source: "agent"`` is a turn, or part of one when the model made several calls in one
response; an event with ``observation`` answers the event that it names as ``cause``. Bookkeeping events are no turns.
"""

from __future__ import annotations

from typing import Any

from services.process.trajectories import lapses
from services.process.trajectories.model import Draft, Step, ToolCall, finish
from services.process.trajectories.record import Place

_NO_TURN = {
    "recall", "system", "change_agent_state", "condensation", "condensation_request", "null", "start", "loading",
    "pause", "resume", "stop", "send_pr", "push",
}  # fmt: skip
_NO_ANSWER = {
    "agent_state_changed", "recall", "null", "agent_condensation",
}  # fmt: skip
_TOOL = {"run": "execute_bash", "run_ipython": "execute_ipython_cell"}


def _events(record: Any) -> Any:
    if isinstance(record, dict):
        return next((record[k] for k in ("history", "trajectory", "events") if isinstance(record.get(k), list)), None)
    return record


def fits(record: Any) -> bool:
    events = _events(record)
    if not isinstance(events, list) or not events:
        return False
    flat = [e for item in events for e in (item if isinstance(item, list) else [item])]
    return all(isinstance(e, dict) and "kind" not in e for e in flat) and any(
        "source" in e and (isinstance(e.get("action"), str) or isinstance(e.get("observation"), str)) for e in flat
    )


def read(record: Any) -> list[Step]:
    root = Place(record)
    if isinstance(record, dict):
        key = next((k for k in ("history", "trajectory", "events") if k in record), "history")
        root = root.get(key)
    drafts: list[Draft] = []
    by_event: dict[Any, Draft] = {}
    responses: dict[str, Draft] = {}
    left = 0  # calls of the last response that are still to come
    position = 0
    for item in root.items():
        for event in item.items() if isinstance(item.value, list) else [item]:
            source = event.get("source").value
            action = event.get("action").value
            if isinstance(action, str):
                if source == "agent" and action not in _NO_TURN:
                    metadata = event.get("tool_call_metadata")
                    response, total = _response(metadata)
                    if response is not None and response in responses:
                        draft = responses[response]
                    elif response is None and left > 0:
                        draft, left = drafts[-1], left - 1
                    else:
                        draft = Draft([])
                        drafts.append(draft)
                        left = total - 1
                    if response is not None:
                        responses[response] = draft
                    draft.source.append(position)
                    _act(event, action, metadata, draft)
                    by_event[_key(event.get("id").value)] = draft
            elif event.get("observation").value is not None:
                _answer(event, drafts, by_event, position)
            position += 1
    for draft in drafts:
        lapses.mark(draft)
    return finish(drafts)


def _key(identity: Any) -> Any:
    return identity if isinstance(identity, int | str) else None


def _response(metadata: Place) -> tuple[str | None, int]:
    """The id of the model's response that an event belongs to, and how many calls that response made."""
    if not isinstance(metadata.value, dict):
        return None, 1
    total = metadata.get("total_calls_in_response").value
    model = metadata.get("model_response").value
    identity = model.get("id") if isinstance(model, dict) else None
    return (identity if isinstance(identity, str) else None), (total if isinstance(total, int) else 1)


def _act(event: Place, action: str, metadata: Place, draft: Draft) -> None:
    args = event.get("args")
    arguments = dict(args.object()) if args.value is not None else {}
    thought = arguments.pop("thought", None)
    if isinstance(thought, str):
        draft.think(thought)
    if action == "message":
        draft.think(args.get("content").text() if args.value is not None else event.get("message").text())
        return
    name = None
    call_id = None
    if isinstance(metadata.value, dict):
        name = metadata.get("function_name").value
        call_id = metadata.get("tool_call_id").value
    tool = name if isinstance(name, str) and name else _TOOL.get(action, action)
    draft.calls.append(ToolCall(tool, arguments, call_id if isinstance(call_id, str) else None))
    if action == "think" and isinstance(thought, str):
        draft.calls[-1] = ToolCall(tool, {"thought": thought}, draft.calls[-1].id)


def _answer(event: Place, drafts: list[Draft], by_event: dict[Any, Draft], position: int) -> None:
    cause = _key(event.get("cause").value)
    draft = by_event.get(cause) if cause is not None else None
    if draft is None:
        if cause is not None or event.get("observation").word() in _NO_ANSWER or not drafts:
            return
        draft = drafts[-1]
    draft.observe(event.get("content").text())
    draft.source.append(position)
