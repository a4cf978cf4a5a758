"""A group of rollouts as the request brings it: checked, read into steps, and placed where segments were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reward_gateway.bodies.faults import Faults
from reward_gateway.bodies.models import parse_model
from services.contracts.proofs import CandidateResult
from services.contracts.trajectories import (
    MAX_STEPS,
    BetaSource,
    Certificate,
    Phase,
    Rollout,
    RolloutFlag,
    Segment,
    Segmentation,
    TrajectoryFormat,
    TrajectoryScoreRequest,
    Want,
)
from services.contracts.workflows import Workflow, WorkflowReport
from services.process.certificates.claims import Evidence, Visit
from services.process.penalties import ActionReader, StepGamma, gamma
from services.process.trajectories import Step, TrajectoryError, detect, read_trajectory
from services.process.trajectories.formats import decode
from services.process.workflow import (
    Placement,
    SegmentFault,
    check_workflow,
    general_graph,
    place_labels,
    place_segments,
)

_Location = tuple[str | int, ...]


@dataclass(slots=True)
class StageBeta:
    """What is known of one stage visit: its beta, from whom, where its votes are kept, and the claim for Lean."""

    beta: int | None
    source: BetaSource | None = None
    votes: str | None = None
    evidence: Evidence | None = None


@dataclass(slots=True)
class Work:
    """One rollout on its way from the request to its rows. Later fields are filled in by later parts of its life."""

    given: Rollout
    format: TrajectoryFormat
    steps: list[Step]
    alpha: int | None
    workflow: Workflow | None = None
    """The plan's contract: given, or formalised here. None where only the general workflow is known."""
    placement: Placement | None = None
    replicas: tuple[Placement, ...] = ()
    """The segmentation of each judge replica, where they have their own."""
    betas: dict[Visit, StageBeta] = field(default_factory=dict)
    gammas: list[StepGamma] | None = None
    proof: CandidateResult | None = None
    report: WorkflowReport | None = None
    certificate: Certificate | None = None
    flags: set[RolloutFlag] = field(default_factory=set)

    @property
    def planned_only(self) -> bool:
        """There is nothing to segment."""
        return all(step.phase.value == Phase.PLAN.value for step in self.steps)


@dataclass(slots=True)
class Group:
    request: TrajectoryScoreRequest
    wants: frozenset[Want]
    general: Workflow
    rollouts: list[Work]
    reader: ActionReader

    @property
    def wants_rewards(self) -> bool:
        return bool(self.wants & {Want.REWARDS, Want.ADVANTAGES})

    @property
    def wants_beta(self) -> bool:
        return Want.BETA in self.wants or self.wants_rewards

    @property
    def wants_segments(self) -> bool:
        return Want.SEGMENTS in self.wants or self.wants_beta

    @property
    def wants_gamma(self) -> bool:
        return Want.GAMMA in self.wants or self.wants_rewards


def read_group(text: str) -> Group:
    """Raises `ProblemError`: what cannot be used, with JSON pointers into the body."""
    request = parse_model(TrajectoryScoreRequest, text)
    faults = Faults()
    _unique(request.general_workflow, ("general_workflow",), faults)
    general = general_graph(request.general_workflow)
    group = Group(request, frozenset(request.want), general, [], ActionReader())
    ids: dict[str, int] = {}
    for index, given in enumerate(request.rollouts):
        place = ("rollouts", index)
        if ids.setdefault(given.id, index) != index:
            faults.add((*place, "id"), f"the id of /rollouts/{ids[given.id]} again")
        work = _read(given, request, general, place, faults)
        if work is not None:
            group.rollouts.append(work)
    faults.check()
    return group


def penalise(group: Group, work: Work) -> list[StepGamma]:
    """gamma of one rollout, within the stage visits that are known by now."""
    places = None if work.placement is None else work.placement.places()
    work.gammas = gamma(work.steps, group.reader, places)
    return work.gammas


def _unique(names: Sequence[str], place: _Location, faults: Faults) -> None:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if seen.setdefault(name, index) != index:
            faults.add((*place, index), f"the stage of index {seen[name]} again")


def _read(
    given: Rollout, request: TrajectoryScoreRequest, general: Workflow, place: _Location, faults: Faults
) -> Work | None:
    """One rollout; None, and at least one fault, when it cannot be used."""
    before = faults.count
    if given.workflow is not None:
        for fault in check_workflow(given.workflow, request.general_workflow):
            faults.add((*place, "workflow", *fault.location), fault.detail)
    if given.replica_segments is not None and request.segmentation is not Segmentation.PER_REPLICA:
        faults.add((*place, "replica_segments"), "only with `segmentation`: `per_replica`")
    elif given.replica_segments is not None and given.segments is not None:
        faults.add((*place, "segments"), "left out where `replica_segments` are given: the first one's are used")
    try:
        record = decode(given.trajectory) if isinstance(given.trajectory, str) else given.trajectory
        name = given.format.value if given.format is not None else detect(record)
        steps = read_trajectory(record, name)
        if len(steps) > MAX_STEPS:
            raise TrajectoryError("", f"{len(steps)} steps, at most {MAX_STEPS} are judged")
    except TrajectoryError as error:
        faults.add((*place, "trajectory", *error.location), error.message)
        return None
    if faults.count > before:
        return None
    work = Work(given, TrajectoryFormat(name), steps, None if given.alpha is None else int(given.alpha), given.workflow)
    _place(work, general, place, faults)
    _given_betas(work, general, place, faults)
    return work if faults.count == before else None


def _place(work: Work, general: Workflow, place: _Location, faults: Faults) -> None:
    """Use what the request says about segments: those of the replicas, its own, or labels on the steps."""
    graph = general if work.workflow is None else work.workflow
    if work.given.replica_segments is not None:
        made = [
            _segments(graph, segments, work.steps, (*place, "replica_segments", replica), faults)
            for replica, segments in enumerate(work.given.replica_segments)
        ]
        work.replicas = tuple(placement for placement in made if placement is not None)
        work.placement = work.replicas[0] if work.replicas else None
        if not made:
            faults.add((*place, "replica_segments"), "at least one segmentation is needed")
    elif work.given.segments is not None:
        work.placement = _segments(graph, work.given.segments, work.steps, (*place, "segments"), faults)
    elif any(step.stage is not None for step in work.steps):
        try:
            work.placement = place_labels(graph, work.steps)
        except SegmentFault as fault:
            at = () if fault.index is None else tuple(work.steps[fault.index].source[:1])
            faults.add((*place, "trajectory", *at), fault.message)
    if work.workflow is not None and work.placement is not None and any(p.illegal for p in _placements(work)):
        work.flags.add(RolloutFlag.ILLEGAL_SEGMENTS)


def _placements(work: Work) -> tuple[Placement, ...]:
    return work.replicas or ((work.placement,) if work.placement is not None else ())


def _segments(
    graph: Workflow, segments: Sequence[Segment], steps: Sequence[Step], place: _Location, faults: Faults
) -> Placement | None:
    try:
        return place_segments(graph, segments, steps)
    except SegmentFault as fault:
        faults.add(place if fault.index is None else (*place, fault.index), fault.message)
        return None


def _given_betas(work: Work, general: Workflow, place: _Location, faults: Faults) -> None:
    graph = general if work.workflow is None else work.workflow
    nodes = {node.id for node in graph.nodes}
    visits = None if work.placement is None else work.placement.visits
    seen: dict[Visit, int] = {}
    for index, reward in enumerate(work.given.stage_rewards or ()):
        at, visit = (*place, "stage_rewards", index), (reward.node, reward.visit)
        if reward.node not in nodes:
            faults.add((*at, "node"), f"there is no node {reward.node}")
        elif seen.setdefault(visit, index) != index:
            faults.add(at, f"the visit of index {seen[visit]} again")
        elif visits is not None and visit not in visits:
            faults.add(at, f"no step is in visit {reward.visit} of node {reward.node}")
        else:
            work.betas[visit] = StageBeta(int(reward.beta), BetaSource.GIVEN)
