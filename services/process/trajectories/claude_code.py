"""Claude Code: ``stream-json`` output (NDJSON of events) and session files of the same blocks.

One model message is a turn, although it comes as one event a content block: events are merged by ``message.id``. A
subagent's events (``parent_tool_use_id``, ``isSidechain``) are another trajectory, events that a resumed session
repeats (same ``uuid``) are copied history, and messages that the client made itself are no turns. Unknown events are
skipped.
"""

from __future__ import annotations

from typing import Any

from services.process.trajectories import chat, lapses
from services.process.trajectories.model import Draft, Step, finish
from services.process.trajectories.record import Place

_TYPES = {
    "system",
    "assistant",
    "user",
    "result",
    "stream_event",
    "rate_limit_event",
    "summary",
    "file-history-snapshot",
}


def fits(record: Any) -> bool:
    return (
        isinstance(record, list)
        and bool(record)
        and all(isinstance(e, dict) and isinstance(e.get("type"), str) for e in record)
        and any(e["type"] in _TYPES and ("message" in e or "session_id" in e or "sessionId" in e) for e in record)
    )


def read(record: Any) -> list[Step]:
    drafts: list[Draft] = []
    by_message: dict[str, Draft] = {}
    by_call: dict[str, Draft] = {}
    seen: set[str] = set()
    for index, event in enumerate(Place(record).items()):
        kind = event.get("type").word()
        if kind not in ("assistant", "user") or _foreign(event):
            continue
        uuid = event.get("uuid").value
        if isinstance(uuid, str):
            if uuid in seen:
                continue
            seen.add(uuid)
        message = event.get("message")
        if kind == "user":
            for part in chat.parts(message.get("content")):
                if part.get("type").value == "tool_result":
                    chat.attach(part, drafts, by_call, index)
            continue
        if message.get("model").value == "<synthetic>":
            continue
        identity = message.get("id").value
        draft = by_message.get(identity) if isinstance(identity, str) else None
        if draft is None:
            draft = Draft([])
            drafts.append(draft)
            if isinstance(identity, str):
                by_message[identity] = draft
        draft.source.append(index)
        chat.assistant(message, draft, by_call)
    for draft in drafts:
        lapses.mark(draft)
    return finish(drafts)


def _foreign(event: Place) -> bool:
    return event.get("parent_tool_use_id").value is not None or event.get("isSidechain").value is True
