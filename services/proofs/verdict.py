"""The one function that turns an engine's facts into a verdict; every engine is judged by it.

Text that Lean prints is data that a candidate can shape. Of the messages only the severity ``error`` and Lean's own
kind of the placeholder warning count, and both only against the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.contracts.lean import (
    AxiomUse,
    CheckAnswer,
    CheckStatus,
    CheckTask,
    LeanOutcome,
    Message,
    Severity,
    TargetFacts,
)
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from services.proofs.lexical import SPACE
from services.proofs.macros import COMMAND_START
from services.proofs.masking import mask
from services.proofs.policy import COMPILER_AXIOMS, PLACEHOLDER_AXIOM

MAX_DETAIL = 1_000
"""Longest `detail` of an outcome, in code points."""

_PLACEHOLDER_KIND = "hasSorry"


@dataclass(frozen=True, slots=True)
class _Fault:
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class _Case:
    """What is judged, and the outcomes that share its facts."""

    task: CheckTask
    answer: CheckAnswer

    def outcome(
        self,
        status: LeanStatus,
        verdict: Verdict,
        reason: Reason,
        detail: str | None = None,
        message: Message | None = None,
        target: TargetFacts | None = None,
    ) -> LeanOutcome:
        axioms = target.axioms if target else AxiomUse()
        return LeanOutcome(
            status=status,
            verdict=verdict,
            reason=reason,
            detail=detail[:MAX_DETAIL] if detail is not None else None,
            position=message.pos if message else None,
            elapsed_s=self.answer.elapsed_s,
            axioms=(*axioms.core, *axioms.library, *axioms.foreign),
            statement_match=target.statement_match if target else None,
            messages=self.answer.messages if self.task.messages else (),
            tactics=self.answer.tactics if self.task.tactics else (),
        )

    def valid(self, target: TargetFacts) -> LeanOutcome:
        return self.outcome(LeanStatus.OK, Verdict.VALID, Reason.OK, target=target)

    def invalid(
        self, reason: Reason, detail: str, message: Message | None = None, target: TargetFacts | None = None
    ) -> LeanOutcome:
        return self.outcome(LeanStatus.OK, Verdict.INVALID, reason, detail, message, target)

    def undecided(self, status: LeanStatus, reason: Reason, detail: str) -> LeanOutcome:
        return self.outcome(status, Verdict.UNKNOWN, reason, detail)

    def infrastructure(self, detail: str) -> LeanOutcome:
        return self.undecided(LeanStatus.CRASHED, Reason.INFRASTRUCTURE, detail)


def judge(task: CheckTask, answer: CheckAnswer, *, repeated: bool = False) -> LeanOutcome:
    """Lean's verdict on `task`, or which fault kept it away.

    `repeated` says that an earlier run of the same check also crashed or ran out of memory; then this is the
    candidate's fault. Without it such an end is no verdict (status ``crashed``): try once more on a clean engine.

    The order is the table in `docs/policy.md`: how the run ended, the caller's header and statement, compile errors,
    placeholders, the target and its statement, axioms, the kernel. Facts that an engine should have reported and did
    not are our fault (``infrastructure``), never the candidate's.
    """
    case = _Case(task, answer)
    if answer.status is CheckStatus.TIMEOUT:
        detail = answer.detail or f"not finished after {task.timeout_s:g} s"
        return case.undecided(LeanStatus.TIMEOUT, Reason.LEAN_TIMEOUT, detail)
    if answer.status in (CheckStatus.CRASHED, CheckStatus.OUT_OF_MEMORY):
        ended = "ran out of memory" if answer.status is CheckStatus.OUT_OF_MEMORY else "crashed Lean"
        detail = answer.detail or "no further detail"
        if not repeated:
            return case.infrastructure(f"{ended} once: {detail}")
        return case.invalid(Reason.RESOURCE_EXHAUSTED, f"{ended} twice: {detail}")
    if answer.header_error is not None:
        return case.undecided(LeanStatus.OK, Reason.STATEMENT_INVALID, f"header: {answer.header_error}")
    if answer.statement_error is not None:
        return case.undecided(LeanStatus.OK, Reason.STATEMENT_INVALID, f"statement: {answer.statement_error}")
    error = next((message for message in answer.messages if message.severity is Severity.ERROR), None)
    if error and _lies_in_header(task, error):
        return case.undecided(LeanStatus.OK, Reason.STATEMENT_INVALID, f"header: {error.data}")
    if answer.status is CheckStatus.HEARTBEATS:
        detail = answer.detail or f"the budget of {task.heartbeats:,} heartbeats is exhausted"
        return case.invalid(Reason.HEARTBEATS, detail, error)
    if error:
        return case.invalid(Reason.COMPILE_ERROR, error.data, error)
    if answer.messages_truncated and not answer.messages:
        return case.infrastructure("the engine dropped all messages, so that errors cannot be excluded")
    hole = next((message for message in answer.messages if message.kind == _PLACEHOLDER_KIND), None)
    if answer.has_placeholder or hole:
        return case.invalid(Reason.PLACEHOLDER, "a declaration of the program depends on `sorry`", hole)
    return _judge_target(case) if task.statement is not None else _judge_theorems(case)


def _lies_in_header(task: CheckTask, error: Message) -> bool:
    """Whether an error is the caller's: in a header that stands at the top of the program, before a new command.

    Engines look at the header by themselves only where there is a statement. What follows must begin a command, else
    a candidate could go on with the header's last one and so blame the caller.
    """
    own = task.header.rstrip(SPACE)
    if not own or error.pos is None or not task.code.startswith(f"{own}\n"):
        return False
    lines = own.count("\n") + 1
    rest = mask(task.code[len(own) :]).text.lstrip(SPACE)
    return error.pos.line <= lines and COMMAND_START.match(rest) is not None


def _judge_target(case: _Case) -> LeanOutcome:
    target = case.answer.target
    if target is None:
        return case.infrastructure("the engine did not report on the expected theorem")
    if not target.found:
        return case.invalid(Reason.STATEMENT_MISMATCH, f"the program declares no `{target.name}`", target=target)
    if target.kind != "theorem":
        detail = f"`{target.name}` is declared, but not as a theorem ({target.kind})"
        return case.invalid(Reason.STATEMENT_MISMATCH, detail, target=target)
    if target.statement_match is None:
        return case.infrastructure("the engine did not compare the statement")
    if mismatch := _mismatch(target, case.task.profile):
        return case.invalid(Reason.STATEMENT_MISMATCH, mismatch, target=target)
    if fault := _unsoundness(target, case.task.profile):
        return case.invalid(fault.reason, fault.detail, target=target)
    return case.valid(target)


def _judge_theorems(case: _Case) -> LeanOutcome:
    """Without a statement one sound theorem is enough; else the first one's fault counts."""
    first: tuple[TargetFacts, _Fault] | None = None
    for theorem in case.answer.theorems:
        if not theorem.found or theorem.kind != "theorem":
            continue
        fault = _unsoundness(theorem, case.task.profile)
        if fault is None:
            return case.valid(theorem)
        first = first or (theorem, fault)
    if first is None:
        return case.invalid(Reason.NO_THEOREM, "the compiled program declares no theorem")
    theorem, fault = first
    return case.invalid(fault.reason, fault.detail, target=theorem)


def _mismatch(target: TargetFacts, profile: Profile) -> str | None:
    """``strict``: equal elaborated types, which fix the proposition; binder kinds do not change it.

    ``paper`` also wants equal pretty-printed signatures (Appendix B), or equal binder kinds where an engine does not
    print.
    """
    if not target.statement_match:
        return f"`{target.name}` states something else than the expected theorem"
    if profile is Profile.PAPER:
        printed = target.printed_match if target.printed_match is not None else target.binders_match
        if printed is False:
            return f"the printed signature of `{target.name}` differs from the expected one"
    return None


def _unsoundness(theorem: TargetFacts, profile: Profile) -> _Fault | None:
    used = theorem.axioms.foreign
    if PLACEHOLDER_AXIOM in used:
        return _Fault(Reason.PLACEHOLDER, f"`{theorem.name}` depends on `{PLACEHOLDER_AXIOM}`")
    forbidden = [axiom for axiom in used if profile is Profile.STRICT or axiom not in COMPILER_AXIOMS]
    if forbidden:
        return _Fault(
            Reason.AXIOM, f"`{theorem.name}` depends on {', '.join(f'`{axiom}`' for axiom in forbidden[:10])}"
        )
    if theorem.kernel_accepts is False:
        return _Fault(Reason.KERNEL_REJECTED, theorem.kernel_detail or f"the kernel does not accept `{theorem.name}`")
    return None
