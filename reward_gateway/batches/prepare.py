"""From a candidate to a Lean job, or to the reason why Lean need not see it."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.batches.keys import job_key
from reward_gateway.batches.plan import Plan
from services.contracts.base import MAX_PROGRAM_BYTES
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Reason
from services.contracts.proofs import Candidate
from services.proofs.extraction import extract_code
from services.proofs.header import Program, attach_header, header_fault
from services.proofs.precheck import Rejection, precheck
from services.proofs.statement import StatementInvalid, read_statement


@dataclass(frozen=True, slots=True)
class Prepared:
    """A check for Lean under its key. `shift`: lines of header that were put before the candidate's own text."""

    key: str
    task: CheckTask
    shift: int


@dataclass(frozen=True, slots=True)
class Unusable:
    """The caller's statement or header cannot be used: no verdict, and not the candidate's fault."""

    detail: str


Preparation = Prepared | Rejection | Unusable


def prepare(candidate: Candidate, plan: Plan) -> Preparation:
    """Extract the program and run the precheck. Never raises; time linear in the text."""
    header = plan.header if candidate.header is None else candidate.header
    if fault := header_fault(header):
        return Unusable(f"header: {fault}")
    code = candidate.code
    if candidate.response is not None:
        if len(candidate.response) > MAX_PROGRAM_BYTES:
            detail = f"a response of {len(candidate.response):,} characters; at most {MAX_PROGRAM_BYTES:,} are read"
            return Rejection(Reason.TOO_LONG, detail, None)
        code = extract_code(candidate.response).code
    program = Program(code or "")
    if code is not None and plan.prepend_header:
        program = attach_header(code, header)
    text = None if code is None else program.text
    rejection = precheck(text, header, plan.profile, plan.heartbeats, program.added_characters)
    if rejection is not None:
        if rejection.position is not None and program.added_lines:
            return Rejection(rejection.reason, rejection.detail, program.position_in_candidate(rejection.position))
        return rejection
    statement = None
    if candidate.statement is not None:
        try:
            statement = read_statement(candidate.statement).text
        except StatementInvalid as error:
            return Unusable(f"statement: {error}")
    task = CheckTask(
        code=program.text,
        header=header,
        statement=statement,
        profile=plan.profile,
        timeout_s=plan.lean_timeout_s,
        heartbeats=plan.heartbeats,
        messages=plan.messages,
    )
    return Prepared(job_key(task), task, program.added_lines)
