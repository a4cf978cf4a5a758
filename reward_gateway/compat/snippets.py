"""Programs that are run as they are, without a policy, for callers who judge Lean's messages themselves.

They go through the same batches, queue and engines as every other check: each in a pristine environment, with the same
limits. What is left out is the precheck, and nothing is compared with a statement.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.book import Batches
from reward_gateway.batches.keys import job_key
from reward_gateway.batches.prepare import Preparation, Prepared
from reward_gateway.bodies.score import ScoreBody
from reward_gateway.compat.patience import answered
from services.contracts.lean import CheckTask, LeanOutcome
from services.contracts.outcomes import LeanStatus, Profile, Reason
from services.contracts.proofs import Candidate, Cutoff, CutoffPolicy, Inclusion, Mode, ScoreOptions
from services.proofs.precheck import Rejection, precheck

_GRACE_S = 2.0
_NO_LEAN_FILE = frozenset({Reason.TOO_LONG, Reason.COMPILE_ERROR})


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`timeout_s`: of one check. `limit_s`: of the whole call. `admission_s`: so long it may wait for room."""

    timeout_s: float
    limit_s: float
    admission_s: float
    heartbeats: int
    tactics: bool


NOT_REACHED = LeanOutcome(status=LeanStatus.CANCELLED, reason=Reason.NOT_DECIDED)
"""Lean did not come to a snippet within the limit of the call."""


async def run_snippets(
    owner: str, batches: Batches, programs: Sequence[str], options: RunOptions, received_at: float
) -> list[LeanOutcome | Rejection]:
    """What became of each program, in order; a `Rejection` for text that no Lean file can hold.

    Raises `ProblemError`: there was no room, or the queue or Lean was down, for `admission_s` seconds.
    """
    given = [_prepared(program, options) for program in programs]
    body = ScoreBody(
        ScoreOptions(
            mode=Mode.LEAN,
            cutoff=Cutoff(policy=CutoffPolicy.ALL, deadline_s=options.limit_s),
            lean_timeout_s=options.timeout_s,
            include=(Inclusion.MESSAGES,),
        ),
        [Candidate(id=str(index), code=program) for index, program in enumerate(programs)],
    )

    def start() -> Batch:
        return batches.start_unnamed(owner, body, received_at=received_at, given=given)

    limit = received_at + options.limit_s
    batch = await answered(
        start,
        batches.leave,
        until=limit + _GRACE_S,
        admission_until=min(limit, time.monotonic() + options.admission_s),
    )
    answers = batch.state.answers
    outcomes: list[LeanOutcome | Rejection] = []
    for prepared in given:
        if isinstance(prepared, Prepared):
            answer = answers.get(prepared.key)
            outcomes.append(NOT_REACHED if answer is None else answer.outcome)
        elif isinstance(prepared, Rejection):
            outcomes.append(prepared)
    return outcomes


def _prepared(program: str, options: RunOptions) -> Preparation:
    rejection = precheck(program, "", Profile.PAPER)
    if rejection is not None and rejection.reason in _NO_LEAN_FILE:
        return rejection
    task = CheckTask(
        code=program,
        profile=Profile.PAPER,
        timeout_s=options.timeout_s,
        heartbeats=options.heartbeats,
        messages=True,
        tactics=options.tactics,
    )
    return Prepared(job_key(task), task, 0)
