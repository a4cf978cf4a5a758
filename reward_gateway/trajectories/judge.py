"""beta of stage visits: code first, the judge's replicas for the rest, and a record of every vote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from reward_gateway.trajectories.endpoint import ModelEndpoint, ModelUnavailable
from reward_gateway.trajectories.group import Group, StageBeta, Work
from reward_gateway.trajectories.votes import VoteStore, new_id
from services.contracts.trajectories import BetaSource, Outcome
from services.contracts.votes import ReplicaVote, Requirement, StageVotes
from services.contracts.workflows import WorkflowNode
from services.process.certificates.claims import Judged, Visit
from services.process.judging.answers import PROMPT, parse, question
from services.process.judging.requirements import Condition, conditions_of, objective
from services.process.judging.transcript import Transcript
from services.process.judging.view import Chunk, chunks_of
from services.process.judging.votes import Shown, absent_vote, beta_of, evidence_of, failed_vote, replica_vote
from services.process.prompts import Malformed
from services.queue.errors import QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.settings import JudgeSettings


class Judge:
    """Judges stage visits. Several at once are fine: the endpoint bounds what is asked at a time."""

    def __init__(self, endpoint: ModelEndpoint, votes: VoteStore, settings: JudgeSettings) -> None:
        self._endpoint = endpoint
        self._votes = votes
        self._settings = settings

    async def judge(self, owner: str, group: Group, work: Work, transcript: Transcript, visit: Visit) -> StageBeta:
        """beta of one visit of the rollout's segmentation; None, unannotated, when no judge answered."""
        placements = work.replicas or (work.placement,) * self._settings.replicas
        turns = [placement.visits.get(visit, []) for placement in placements if placement is not None]
        graph = work.workflow or group.general
        node = next(node for node in graph.nodes if node.id == visit[0])
        conditions = await asyncio.to_thread(conditions_of, node, transcript, turns[0])
        checks = [condition.decided for condition in conditions if condition.decided is not None]
        if not all(checks) or len(checks) == len(conditions):
            return StageBeta(1 if all(checks) else -1, BetaSource.CODE, None, Judged(checks, None))
        ask = partial(
            self._ask, group.request.task, node, [c.text for c in conditions if c.decided is None], transcript
        )
        replicas = await asyncio.gather(*(ask(replica, steps) for replica, steps in enumerate(turns)))
        beta = beta_of(replicas)
        _count(replicas)
        record = _record(group, work, visit, turns[0], conditions, replicas, beta, self._settings.model)
        kept = await self._keep(owner, record)
        source = None if beta is None else BetaSource.JUDGE
        return StageBeta(beta, source, kept, evidence_of(checks, replicas))

    async def _ask(
        self,
        task: str,
        node: WorkflowNode,
        requirements: Sequence[str],
        transcript: Transcript,
        replica: int,
        visit: Sequence[int],
    ) -> ReplicaVote:
        if not visit:
            return absent_vote(replica)
        chunks = await asyncio.to_thread(chunks_of, transcript, visit, self._settings.chunk_tokens)
        try:
            shown = await asyncio.gather(
                *(
                    self._chunk(task, node, requirements, chunk, f"part {number} of {len(chunks)}", replica)
                    for number, chunk in enumerate(chunks, 1)
                )
            )
        except (Malformed, ModelUnavailable) as error:
            return failed_vote(replica, visit, str(error))
        return await asyncio.to_thread(replica_vote, replica, visit, shown, transcript)

    async def _chunk(
        self, task: str, node: WorkflowNode, requirements: Sequence[str], chunk: Chunk, part: str, replica: int
    ) -> Shown:
        asked = question(task, node.general_stage, objective(node), requirements, chunk, part)
        answers, reply = await self._endpoint.ask(asked, replica, partial(parse, requirements=len(requirements)))
        return Shown(chunk, asked.body(reply.nonce), answers)

    async def _keep(self, owner: str, record: StageVotes) -> str | None:
        try:
            await self._votes.put(owner, record)
        except QueueUnavailable as error:
            get_logger().warning("votes_not_kept", error=str(error))
            return None
        return record.id


def _record(
    group: Group,
    work: Work,
    visit: Visit,
    steps: Sequence[int],
    conditions: Sequence[Condition],
    replicas: Sequence[ReplicaVote],
    beta: int | None,
    model: str,
) -> StageVotes:
    # What code decided comes last, so that the votes count the others from 0, as the judge was asked.
    open_first = sorted(conditions, key=lambda condition: condition.decided is not None)
    return StageVotes(
        id=new_id(),
        group=group.request.group,
        rollout=work.given.id,
        node=visit[0],
        visit=visit[1],
        first_step=steps[0],
        last_step=steps[-1],
        beta=None if beta is None else Outcome(beta),
        requirements=tuple(Requirement(text=c.text, decided=c.decided) for c in open_first),
        replicas=tuple(replicas),
        judge=model,
        prompt_version=PROMPT.version,
    )


def _count(replicas: Sequence[ReplicaVote]) -> None:
    for vote in replicas:
        if not vote.answered:
            metrics.VOTE_DOWNGRADES.labels("judge_failed").inc()
        for requirement in vote.requirements:
            if requirement.downgrade is not None:
                metrics.VOTE_DOWNGRADES.labels(requirement.downgrade.value).inc()
