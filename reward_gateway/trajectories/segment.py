"""Workflow and segments of a rollout that brings none: the plan formalised, then every turn assigned to a stage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from reward_gateway.trajectories.endpoint import ModelEndpoint
from reward_gateway.trajectories.group import Group, Work
from services.contracts.trajectories import RolloutFlag, Segmentation
from services.contracts.workflows import Workflow, WorkflowReport
from services.process.certificates.claims import Row
from services.process.prompts import Malformed
from services.process.segmentation import step_question
from services.process.segmentation.cursor import STAY, Cursor
from services.process.segmentation.turns import step_rows, turns_of
from services.process.trajectories import Step
from services.process.workflow import Placement, Segmented, execution, placed
from services.process.workflow import formalisation as plans
from services.process.workflow.verdicts import static_verdicts
from services.runtime.settings import JudgeSettings

_REPAIRS = 2


class Segmenter:
    """Makes what is missing of a rollout's workflow and segments. Its methods raise `ModelUnavailable`."""

    def __init__(self, endpoint: ModelEndpoint, settings: JudgeSettings) -> None:
        self._endpoint = endpoint
        self._settings = settings

    async def segment(self, group: Group, work: Work) -> None:
        """Fill in `workflow`, `placement` and, where each replica has its own, `replicas`."""
        if work.placement is not None or work.planned_only:
            return
        if work.workflow is None and work.given.plan:
            work.workflow, work.report = await self._formalise(work.given.plan, group)
            if work.report.degraded:
                work.flags.add(RolloutFlag.DEGRADED_WORKFLOW)
        graph = work.workflow or plans.skeleton(group.request.general_workflow)
        own = group.request.segmentation is Segmentation.PER_REPLICA
        made = await asyncio.gather(
            *(self._walk(graph, work.steps, replica) for replica in range(self._settings.replicas if own else 1))
        )
        if any(corrected for _, corrected in made):
            work.flags.add(RolloutFlag.CORRECTED_SEGMENTS)
        work.placement = made[0][0]
        work.replicas = tuple(placement for placement, _ in made) if own else ()

    async def _formalise(self, plan: str, group: Group) -> tuple[Workflow, WorkflowReport]:
        """The contract of a plan; the general workflow's chain, marked as degraded, when no output could be used."""
        general = group.request.general_workflow
        broken: plans.Unfit | None = None
        for repairs in range(_REPAIRS + 1):
            asked = plans.question(plan, group.request.task, general, broken)
            try:
                workflow, _ = await self._endpoint.ask(asked, 0, partial(_contract, general=general), again=False)
            except plans.Unfit as error:
                broken = error
                continue
            return workflow, await self._report(workflow, repairs, degraded=False)
        workflow = plans.skeleton(general)
        return workflow, await self._report(workflow, _REPAIRS + 1, degraded=True)

    async def _report(self, workflow: Workflow, repairs: int, *, degraded: bool) -> WorkflowReport:
        return WorkflowReport(
            verdicts=await asyncio.to_thread(static_verdicts, workflow),
            degraded=degraded,
            repairs=repairs,
            model=self._settings.model,
            prompt_version=plans.PROMPT.version,
        )

    async def _walk(self, workflow: Workflow, steps: Sequence[Step], replica: int) -> tuple[Placement, int]:
        """One segmentation, and how many answers were illegal or unreadable and became STAY."""
        cursor, turns = Cursor(workflow), turns_of(execution(steps))
        rows: list[Row] = []
        corrected = 0
        for index, turn in enumerate(turns):
            move = STAY
            if cursor.moves():  # where the workflow ends there is nothing to decide
                asked = step_question.question(workflow, cursor, turns, index)
                try:
                    answer, _ = await self._endpoint.ask(asked, replica, step_question.parse)
                except Malformed:
                    corrected += 1
                else:
                    found = step_question.legal(cursor, answer)
                    corrected += found is None
                    move = found or STAY
            rows += step_rows(turn, cursor.row(move))
        return placed(workflow, Segmented(tuple(rows), ()), steps), corrected


def _contract(text: str, general: Sequence[str]) -> Workflow:
    return plans.parse(text, general)
