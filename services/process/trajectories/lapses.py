"""Turns that failed to act through no idleness of the agent.

A harness that cannot read an action answers with an error and records a turn without a tool call. Where the turn shows
that it tried to act (a command block, a broken call) that is a parse failure and no idle turn; prose that merely draws
the same error stays an idle turn, else every reasoning-only turn would be excused.
"""

from __future__ import annotations

import re

from services.process.trajectories.model import Draft, Lapse

_ATTEMPT = re.compile(
    r"```|<(?:tool_call|function_calls?|function=|invoke|commands?|keystrokes|execute_\w+|action)\b"
    r"|[\"'](?:commands?|keystrokes|tool_calls?|arguments|function)[\"']\s*:",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    r"had parsing errors|not formatted correctly|format error|error parsing tool call|no valid json|invalid json"
    r"|unknown tool|missing '\w+' argument|expected exactly \d+ action"
    r"|(?:no|multiple) (?:tool calls?|actions?) (?:were )?found"
    r"|provide exactly one action|could not (?:parse|be parsed)|failed to parse|not (?:a )?valid (?:json|tool call)",
    re.IGNORECASE,
)
_LOOK = 20_000  # characters of an observation in which a complaint is looked for


def tried_to_act(text: str) -> bool:
    """Whether a turn's own text holds something like an action."""
    return _ATTEMPT.search(text) is not None


def mark(draft: Draft) -> None:
    """Marks a turn without a call as a parse failure when it tried to act and its harness complained."""
    if draft.calls or draft.lapse is not None or not draft.observations:
        return
    complained = any(_COMPLAINT.search(seen.text[:_LOOK]) for seen in draft.observations)
    if complained and tried_to_act("\n".join(draft.thoughts)):
        draft.lapse = Lapse.PARSE_FAILURE
