"""What the Lean REPL would have answered: messages, sorries and tactic trees in the shapes of its JSON protocol.

Source: leanprover-community/repl, `REPL/JSON.lean` and `REPL/Lean/InfoTree/ToJson.lean`. Positions are 1-based lines
and 0-based columns of the whole program as it was sent, its import lines counted.
"""

from __future__ import annotations

import re
from typing import Any

from services.contracts.lean import LeanOutcome, Message, Position, Severity, TacticState
from services.contracts.outcomes import Reason

_PLACEHOLDER_KIND = "hasSorry"
_PLACEHOLDER = re.compile(r"declaration uses ['`]sorry['`]")  # with quotes until 2025, since then with backquotes
_START = Position(line=1, column=0)


def command_response(outcome: LeanOutcome, *, infotree: bool) -> dict[str, Any]:
    """The REPL's answer to a command that ran to its end. Empty lists are left out, as the REPL does."""
    response: dict[str, Any] = {"env": 0}
    if outcome.messages:
        response["messages"] = [message_json(message) for message in outcome.messages]
    if sorries := _sorries(outcome):
        response["sorries"] = sorries
    if infotree and outcome.tactics:
        response["infotree"] = tactic_trees(outcome.tactics)
    return response


def error_response(detail: str, position: Position | None) -> dict[str, Any]:
    """The answer to text that no Lean file can hold."""
    return {"env": 0, "messages": [message_json(Message(severity=Severity.ERROR, data=detail, pos=position))]}


def message_json(message: Message) -> dict[str, Any]:
    return {
        "severity": message.severity.value,
        "pos": _place(message.pos or _START),
        "endPos": None if message.end_pos is None else _place(message.end_pos),
        "data": message.data,
    }


def _sorries(outcome: LeanOutcome) -> list[dict[str, Any]]:
    """One for each warning of a placeholder, and one for a placeholder that no message mentions.

    Clients take a program for complete when this list is empty. The goals are not known here.
    """
    found = [m for m in outcome.messages if m.severity is Severity.WARNING and _names_placeholder(m)]
    if not found and outcome.reason is Reason.PLACEHOLDER:
        found = [Message(severity=Severity.WARNING, data="", pos=outcome.position)]
    places = [(_place(m.pos or _START), _place(m.end_pos or m.pos or _START)) for m in found]
    return [{"pos": start, "endPos": end, "goal": ""} for start, end in places]


def _names_placeholder(message: Message) -> bool:
    return message.kind == _PLACEHOLDER_KIND or bool(_PLACEHOLDER.search(message.data))


def tactic_trees(tactics: tuple[TacticState, ...]) -> list[dict[str, Any]]:
    """Tactics as the REPL's `infotree`, nested by the text that they span; linear after sorting."""
    roots: list[dict[str, Any]] = []
    open_nodes: list[tuple[tuple[int, int], dict[str, Any]]] = []  # the end of each, the outermost first
    for tactic in sorted(tactics, key=lambda t: (*_key(t.pos), *(-n for n in _key(t.end_pos)))):
        node = {
            "kind": "TacticInfo",
            "node": {
                "stx": {
                    "pp": tactic.tactic,
                    "range": {"synthetic": False, "start": _place(tactic.pos), "finish": _place(tactic.end_pos)},
                },
                "name": None,
                "goalsBefore": list(tactic.goals_before),
                "goalsAfter": list(tactic.goals_after),
            },
            "children": [],
        }
        end = _key(tactic.end_pos)
        while open_nodes and open_nodes[-1][0] < end:
            open_nodes.pop()
        while open_nodes and open_nodes[-1][0] <= _key(tactic.pos):
            open_nodes.pop()
        (open_nodes[-1][1]["children"] if open_nodes else roots).append(node)
        open_nodes.append((end, node))
    return roots


def _key(position: Position) -> tuple[int, int]:
    return (position.line, position.column)


def _place(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}
