"""Certificates: what was answered about each rollout, as a theorem, checked by Lean like any program."""

from __future__ import annotations

from collections.abc import Sequence

from reward_gateway.batches.book import Batches
from reward_gateway.batches.keys import job_key
from reward_gateway.batches.prepare import Prepared
from reward_gateway.bodies.score import ScoreBody
from reward_gateway.trajectories.group import Group, StageBeta, Work
from reward_gateway.trajectories.rows import beta_at, gamma_at
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Verdict
from services.contracts.proofs import Candidate, Cutoff, CutoffPolicy, Mode, ScoreOptions, ScoreResponse
from services.contracts.trajectories import Certificate, CertificateStatus
from services.process.certificates import emit
from services.process.certificates.claims import Answers, Given, Rollout, Row
from services.process.penalties.actions import turns
from services.process.penalties.claims import claimed_steps
from services.process.trajectories import Phase
from services.process.workflow import Placement, transitions_of
from services.rewards.algebra import step_tenths
from services.rewards.band import PassRate, pass_rate
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError

_TOGETHER = 32
"""Certificates in one program: the definitions are elaborated once for all of them."""
_HEARTBEATS = 20_000_000
_STATUS = {
    Verdict.VALID: CertificateStatus.CERTIFIED,
    Verdict.INVALID: CertificateStatus.REFUSED,
    Verdict.UNKNOWN: CertificateStatus.UNAVAILABLE,
}


def library() -> str:
    """The definitions that every certificate follows."""
    return emit.program([])


def write(group: Group) -> dict[int, emit.Certificate]:
    """The certificate of each rollout that has one, by its index; the others are told why not. For a processor."""
    rate = pass_rate(work.alpha for work in group.rollouts)
    made = {}
    for index, work in enumerate(group.rollouts):
        if work.alpha is None or work.placement is None or work.gammas is None:
            lacking = "its outcome is not known" if work.alpha is None else "its steps have no stages"
            work.certificate = Certificate(status=CertificateStatus.UNAVAILABLE, detail=lacking)
        else:
            try:
                made[index] = _certificate(f"r{index}", group, work, work.alpha, work.placement, rate)
            except ValueError as error:  # a number that has no room, such as a huge node id
                work.certificate = Certificate(status=CertificateStatus.UNAVAILABLE, detail=str(error))
    return made


async def check(
    group: Group,
    owner: str,
    made: dict[int, emit.Certificate],
    batches: Batches,
    left_s: float,
    now: float,
    priority: int = 0,
) -> None:
    """Have Lean check certificates for `owner` within `left_s` seconds from `now` (monotonic), and tell each rollout.

    Several stand in one program; when Lean refuses that, each is checked alone. A Lean that cannot be asked leaves them
    `unavailable`, never refused.
    """
    numbers = list(made)
    parts = [numbers[start : start + _TOGETHER] for start in range(0, len(numbers), _TOGETHER)]
    for alone in (False, True):
        if not parts:
            break
        verdicts = await _verdicts(owner, [[made[i] for i in part] for part in parts], batches, left_s, now, priority)
        refused: list[list[int]] = []
        for part, (status, detail) in zip(parts, verdicts, strict=True):
            if status is CertificateStatus.REFUSED and len(part) > 1 and not alone:
                refused += [[index] for index in part]
                continue
            for index in part:
                group.rollouts[index].certificate = Certificate(
                    status=status, program=made[index].text, theorems=(made[index].theorem,), detail=detail
                )
                metrics.CERTIFICATES.labels(status.value).inc()
                if status is CertificateStatus.REFUSED:
                    get_logger().error("certificate_refused", group=group.request.group, detail=detail)
        parts = refused


async def _verdicts(
    owner: str,
    programs: Sequence[Sequence[emit.Certificate]],
    batches: Batches,
    left_s: float,
    now: float,
    priority: int,
) -> list[tuple[CertificateStatus, str | None]]:
    candidates, given = [], []
    for index, certificates in enumerate(programs):
        code = emit.program(certificates)
        task = CheckTask(code=code, timeout_s=max(1.0, left_s), heartbeats=_HEARTBEATS)
        candidates.append(Candidate(id=f"certificate-{index}", code=""))
        given.append(Prepared(job_key(task), task, 0))
    cutoff = Cutoff(policy=CutoffPolicy.ALL, deadline_s=max(0.05, left_s))
    options = ScoreOptions(mode=Mode.LEAN, cutoff=cutoff, priority=priority)
    try:
        batch = batches.start_unnamed(owner, ScoreBody(options, candidates), received_at=now, given=given)
        try:
            answer = await batch.answer
        finally:
            batches.leave(batch)
    except ProblemError as error:
        return [(CertificateStatus.UNAVAILABLE, error.detail)] * len(programs)
    results = ScoreResponse.model_validate_json(answer.body).results
    return [
        (
            _STATUS[r.verdict],
            None if r.verdict is Verdict.VALID else f"{r.reason.value}: {r.detail or 'no more is known'}",
        )
        for r in results
    ]


def _certificate(
    name: str, group: Group, work: Work, alpha: int, placement: Placement, rate: PassRate
) -> emit.Certificate:
    executed = [step.index for step in work.steps if step.phase is Phase.EXEC]
    rows = [row for row in placement.rows if isinstance(row, Row)]
    judged = [turn for turn in turns(work.steps, group.reader, placement.places()) if turn.step.phase is Phase.EXEC]
    stages = [(visit, work.betas.get(visit, StageBeta(None))) for visit in placement.visits]
    evidence = [(visit, stage.evidence or Given(stage.beta)) for visit, stage in stages]
    answers = Answers(
        legal=not placement.illegal,
        betas=[stage.beta for _, stage in stages],
        rules=[work.gammas[index].rules if work.gammas else () for index in executed],
        reward_tenths=[
            step_tenths(alpha, beta_at(work, index), gamma_at(work, index), in_band=rate.in_process_band)
            for index in executed
        ],
    )
    rollout = Rollout(alpha, rows, claimed_steps(judged), evidence)
    return emit.certify(name, transitions_of(placement.workflow), rollout, rate, answers)
