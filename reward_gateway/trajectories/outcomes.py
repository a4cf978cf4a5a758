"""alpha of rollouts that bring a proof: one ordinary batch of proofs, whose verdicts become outcomes."""

from __future__ import annotations

from reward_gateway.batches.book import Batches
from reward_gateway.bodies.score import ScoreBody
from reward_gateway.trajectories.group import Group, Work
from services.contracts.outcomes import Verdict
from services.contracts.proofs import Cutoff, CutoffPolicy, CutoffReason, Mode, ScoreOptions, ScoreResponse
from services.contracts.trajectories import RolloutFlag

_ALPHA = {Verdict.VALID: 1, Verdict.INVALID: -1, Verdict.UNKNOWN: None}


async def prove(group: Group, owner: str, batches: Batches, *, deadline_s: float, received_at: float) -> None:
    """Fill in `alpha` and `proof` of every rollout that brought a proof; a verdict of unknown leaves alpha unknown.

    `deadline_s` counts from `received_at`, on the monotonic clock. Raises `ProblemError`: Lean cannot be asked.
    """
    waiting = [(work, work.given.proof) for work in group.rollouts if work.given.proof is not None]
    if not waiting:
        return
    candidates = [proof.model_copy(update={"id": f"proof-{index}"}) for index, (_, proof) in enumerate(waiting)]
    # The outcome is what everything else is measured by: Lean alone says it, never a prediction.
    options = ScoreOptions(mode=Mode.LEAN, cutoff=Cutoff(policy=CutoffPolicy.ALL, deadline_s=deadline_s))
    batch = batches.start_unnamed(owner, ScoreBody(options, candidates), received_at=received_at)
    try:
        answer = await batch.answer
    finally:
        batches.leave(batch)
    response = ScoreResponse.model_validate_json(answer.body)
    late = response.cutoff.reason is CutoffReason.DEADLINE
    for (work, proof), result in zip(waiting, response.results, strict=True):
        work.proof = result.model_copy(update={"id": proof.id})
        work.alpha = _ALPHA[result.verdict]
        if late and work.alpha is None:
            work.flags.add(RolloutFlag.DEADLINE)


def settled(work: Work) -> bool:
    """Whether the outcome can still become known."""
    return work.given.proof is None or work.proof is not None
