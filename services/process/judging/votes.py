"""From the replicas' answers to beta: downgrades first, then the majority (lean4agenticrl, Appendix J).

The same counting as `lean/LeanReward/Votes.lean`, to which `evidence_of` translates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.contracts.trajectories import Outcome
from services.contracts.votes import Downgrade, Judgement, Quote, ReplicaVote, RequirementVote
from services.process.certificates.claims import Answer, Ballot, Judged
from services.process.judging.answers import RequirementAnswer
from services.process.judging.quotes import Finding, find
from services.process.judging.transcript import Transcript
from services.process.judging.view import Chunk


@dataclass(frozen=True, slots=True)
class Shown:
    """One chunk as a replica answered it: exactly what it was shown, and its answer for each requirement."""

    chunk: Chunk
    text: str
    answers: tuple[RequirementAnswer, ...]


def replica_vote(replica: int, visit: Sequence[int], shown: Sequence[Shown], transcript: Transcript) -> ReplicaVote:
    """The vote of a replica that answered every chunk of its view of a stage; `visit` are the steps of the stage in its
    own segmentation.
    """
    count = len(shown[0].answers)
    votes = tuple(_requirement(number, shown, transcript, visit[-1]) for number in range(count))
    return ReplicaVote(
        replica=replica,
        first_step=visit[0],
        last_step=visit[-1],
        answered=True,
        requirements=votes,
        vote=Outcome.PASSED if all(vote.vote is Outcome.PASSED for vote in votes) else Outcome.FAILED,
        shown=tuple(part.text for part in shown),
    )


def failed_vote(replica: int, visit: Sequence[int], detail: str) -> ReplicaVote:
    """The vote, -1, of a replica without a usable answer."""
    return ReplicaVote(
        replica=replica,
        first_step=visit[0] if visit else None,
        last_step=visit[-1] if visit else None,
        answered=False,
        vote=Outcome.FAILED,
        detail=detail,
    )


def absent_vote(replica: int) -> ReplicaVote:
    """The vote, -1, of a replica whose own segmentation never enters the stage: it sees nothing that establishes it."""
    return ReplicaVote(
        replica=replica,
        first_step=None,
        last_step=None,
        answered=False,
        vote=Outcome.FAILED,
        detail="not in its segmentation",
    )


def beta_of(votes: Sequence[ReplicaVote]) -> int | None:
    """The majority over all replicas; None, unannotated, when none of them answered."""
    if not any(vote.answered for vote in votes):
        return None
    return 1 if 2 * sum(vote.vote is Outcome.PASSED for vote in votes) > len(votes) else -1


def evidence_of(checks: Sequence[bool], votes: Sequence[ReplicaVote]) -> Judged:
    """The same votes as claims about the Lean library's counting."""
    return Judged(checks, [_ballot(vote) for vote in votes])


def _requirement(number: int, shown: Sequence[Shown], transcript: Transcript, end: int) -> RequirementVote:
    """+1 when a chunk supports with a quote that counts, and none contradicts."""
    answers = [part.answers[number] for part in shown]
    against = next((answer for answer in answers if answer.judgement is Judgement.CONTRADICTION), None)
    if against is not None:
        return _vote(number, against, None)
    best: tuple[RequirementAnswer, Finding] | None = None
    for part, answer in zip(shown, answers, strict=True):
        if answer.judgement is Judgement.SUPPORT:
            finding = find(answer.quote, part.chunk.pieces, transcript, end)
            if best is None or finding.downgrade is None:
                best = (answer, finding)
            if finding.downgrade is None:
                break
    if best is None:
        return _vote(number, answers[0], None)
    return _vote(number, *best)


def _vote(number: int, answer: RequirementAnswer, finding: Finding | None) -> RequirementVote:
    accepted = finding is not None and finding.downgrade is None
    return RequirementVote(
        requirement=number,
        judgement=answer.judgement,
        quote=Quote(text=answer.quote, found_step=None if finding is None else finding.step) if answer.quote else None,
        explanation=answer.explanation,
        downgrade=None if finding is None else finding.downgrade,
        vote=Outcome.PASSED if accepted else Outcome.FAILED,
    )


def _ballot(vote: ReplicaVote) -> Ballot:
    """All requirements of one replica as one ballot: it claims +1 when it supports all of them, and its quote stands at
    the latest of the accepted places; nowhere when one of them was refused.
    """
    claims = bool(vote.requirements) and all(r.judgement is Judgement.SUPPORT for r in vote.requirements)
    places: list[int | None] = []
    for requirement in vote.requirements:
        counts = requirement.downgrade in (None, Downgrade.FROM_THE_FUTURE)
        places.append(requirement.quote.found_step if counts and requirement.quote is not None else None)
    known = [place for place in places if place is not None]
    return Ballot(
        available=vote.answered,
        chunks=[Answer.SUPPORT if claims else Answer.INSUFFICIENT] if vote.requirements else [],
        quote=max(known) if known and len(known) == len(places) else None,
        segment_end=vote.last_step or 0,
    )
