"""From a reply of the host to a `CheckAnswer`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.contracts.lean import (
    AxiomUse,
    CheckAnswer,
    CheckStatus,
    Message,
    Position,
    Severity,
    TacticState,
    TargetFacts,
)

# Lean names the kind of its own run-time exceptions; a candidate can throw one itself, which only makes it invalid.
_HEARTBEATS = "runtime.maxHeartbeats"
_TRAILING_PROOF = re.compile(r"\s*:=\s*(by\s*)?(sorry\s*)?\Z")

_STATUS = {
    "timeout": CheckStatus.TIMEOUT,
    "crashed": CheckStatus.CRASHED,
    "out_of_memory": CheckStatus.OUT_OF_MEMORY,
}


def without_proof(statement: str) -> str:
    """A statement without a trailing `:=`, `:= by` or `:= by sorry`."""
    return _TRAILING_PROOF.sub("", statement)


def read_answer(reply: Mapping[str, Any], elapsed_s: float) -> CheckAnswer:
    """The answer that a reply stands for. `elapsed_s`: wall-clock seconds of the check, as the engine measured it."""
    messages = tuple(_message(message) for message in reply.get("messages", ()))
    status = _status(reply, messages)
    return CheckAnswer(
        status=status,
        elapsed_s=elapsed_s,
        detail=_detail(status, reply),
        header_error=reply.get("headerError"),
        statement_error=reply.get("statementError"),
        messages=messages,
        messages_truncated=reply.get("truncated", False),
        has_placeholder=reply.get("hasPlaceholder", False),
        target=_facts(reply["target"]) if reply.get("target") else None,
        theorems=tuple(_facts(theorem) for theorem in reply.get("theorems", ())),
        tactics=tuple(_tactic(tactic) for tactic in reply.get("tactics", ())),
    )


def _status(reply: Mapping[str, Any], messages: Sequence[Message]) -> CheckStatus:
    """How the check ended.

    Lean words an exhausted budget and our watchdog alike, so the host says whether the watchdog fired while the check
    was running. A check that came out right all the same was not harmed by it.
    """
    errors = [message for message in messages if message.severity is Severity.ERROR]
    unharmed = reply["status"] == "done" and not errors and _kernel_accepts(reply)
    if reply.get("poked") and not unharmed:
        return CheckStatus.TIMEOUT
    if reply["status"] != "done":
        return _STATUS[reply["status"]]
    if reply.get("kernelOutOfBudget") or (errors and all(error.kind == _HEARTBEATS for error in errors)):
        return CheckStatus.HEARTBEATS
    return CheckStatus.DONE


def _kernel_accepts(reply: Mapping[str, Any]) -> bool:
    judged = [reply["target"]] if reply.get("target") else reply.get("theorems", ())
    return bool(judged) and all(facts.get("kernelAccepts") for facts in judged)


def _detail(status: CheckStatus, reply: Mapping[str, Any]) -> str | None:
    if status is CheckStatus.DONE:
        return None
    if status is CheckStatus.HEARTBEATS:
        return "the budget of heartbeats is exhausted"
    detail = reply.get("detail")
    if status is CheckStatus.TIMEOUT:
        return detail or "stopped at the time limit"
    return detail


def _message(message: Mapping[str, Any]) -> Message:
    return Message(
        severity=Severity(message["severity"]),
        data=message["data"],
        pos=_position(message.get("pos")),
        end_pos=_position(message.get("endPos")),
        kind=message.get("kind"),
    )


def _position(position: Mapping[str, int] | None) -> Position | None:
    return None if position is None else Position(line=position["line"], column=position["column"])


def _facts(facts: Mapping[str, Any]) -> TargetFacts:
    return TargetFacts(
        name=facts["name"],
        found=facts["found"],
        kind=facts.get("kind"),
        axioms=AxiomUse(**{group: tuple(names) for group, names in facts.get("axioms", {}).items()}),
        statement_match=facts.get("statementMatch"),
        binders_match=facts.get("bindersMatch"),
        printed_match=facts.get("printedMatch"),
        kernel_accepts=facts.get("kernelAccepts"),
        kernel_detail=facts.get("kernelDetail"),
    )


def _tactic(tactic: Mapping[str, Any]) -> TacticState:
    return TacticState(
        tactic=tactic["tactic"],
        pos=Position(**tactic["pos"]),
        end_pos=Position(**tactic["endPos"]),
        goals_before=tuple(tactic["goalsBefore"]),
        goals_after=tuple(tactic["goalsAfter"]),
    )
