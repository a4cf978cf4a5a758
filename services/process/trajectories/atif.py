"""Harbor ATIF (``schema_version: "ATIF-v1.x"``), whatever agent it records; Terminus-2's raw answers are parsed here
too.

Only ``source: "agent"`` steps are turns. Copied history (``is_copied_context``) is skipped, subagents' trajectories
are not entered. A step that a Claude Code converter split off (text first, then the call of the same message) is
joined again: Claude Code never continues after a message without a call, so two agent steps in a row of one moment are
one message.
"""

from __future__ import annotations

from typing import Any

from services.process.trajectories import lapses, terminus
from services.process.trajectories.model import Draft, Lapse, Step, ToolCall, finish
from services.process.trajectories.record import Place


def fits(record: Any) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("steps"), list):
        return False
    return str(record.get("schema_version", "")).upper().startswith("ATIF") or (
        isinstance(record.get("agent"), dict)
        and any(isinstance(s, dict) and s.get("source") in ("agent", "user", "system") for s in record["steps"])
    )


def read(record: Any) -> list[Step]:
    root = Place(record)
    agent = _agent_name(root)
    drafts: list[Draft] = []
    split: Place | None = None  # a text-only step of Claude Code whose call may follow
    for index, place in enumerate(root.get("steps").items()):
        source = place.get("source")
        if source.value not in ("system", "user", "agent"):
            raise source.fail('expected "system", "user" or "agent"')
        if source.value != "agent" or place.get("is_copied_context").value is True:
            split = None
            continue
        if split is not None and _same_message(split, place):
            draft = drafts[-1]
        else:
            draft = Draft([])
            drafts.append(draft)
        draft.source.append(index)
        _turn(place, draft, "terminus" in agent)
        split = place if "claude" in agent and not draft.calls and not draft.observations else None
    for draft in drafts:
        lapses.mark(draft)
    return finish(drafts)


def _agent_name(root: Place) -> str:
    agent = root.get("agent")
    return agent.get("name").string().lower() if agent.value is not None else ""


def _same_message(first: Place, second: Place) -> bool:
    moment = first.get("timestamp").value
    return moment is not None and moment == second.get("timestamp").value


def _turn(place: Place, draft: Draft, is_terminus: bool) -> None:
    draft.think(place.get("reasoning_content").text())
    message = place.get("message").text()
    draft.think(message)
    for call in place.get("tool_calls").items():
        identity = call.get("tool_call_id").value
        draft.calls.append(
            ToolCall(
                call.get("function_name").name(),
                call.get("arguments").arguments(),
                identity if isinstance(identity, str) else None,
            )
        )
    if is_terminus and not draft.calls:
        draft.calls += terminus.raw_calls(message) or []
    _observe(place.get("observation"), draft)
    extra = place.get("extra").value
    if isinstance(extra, dict) and ("context_management" in extra or extra.get("is_summary") is True):
        draft.lapse = Lapse.SUMMARY


def _observe(observation: Place, draft: Draft) -> None:
    if observation.value is None:
        return
    if not isinstance(observation.value, dict):
        draft.observe(observation.text())
        return
    for result in observation.get("results").items():
        identity = result.get("source_call_id").value
        draft.observe(result.get("content").text(), identity if isinstance(identity, str) else None)
