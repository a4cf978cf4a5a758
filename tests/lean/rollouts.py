"""Random rollouts, and what Python answers about them: loops that share nothing with the Lean library but its words."""

from __future__ import annotations

import random

from services.process.certificates.claims import (
    Action,
    Answer,
    Answers,
    Ballot,
    Decision,
    Evidence,
    Given,
    Judged,
    Link,
    Rollout,
    Row,
    Statement,
    Step,
    Transitions,
)
from services.rewards.algebra import step_tenths
from services.rewards.band import PassRate


def random_transitions(rng: random.Random) -> Transitions:
    nodes = rng.randint(2, 7)
    forward = [(i, i + 1) for i in range(nodes - 1)]
    forward += [(i, j) for i in range(nodes) for j in range(i + 2, nodes) if rng.random() < 0.15]
    back = [(j, i) for i in range(nodes) for j in range(i, nodes) if rng.random() < 0.15]
    return Transitions(0, forward, back)


def random_rows(rng: random.Random, graph: Transitions, length: int) -> list[Row]:
    """Mostly legal; now and then a wrong decision, node or visit."""
    node, visit, entered, rows = graph.entry, 0, [graph.entry], []
    for _ in range(length):
        moves = [(Decision.ADVANCE, b) for a, b in graph.forward if a == node]
        moves += [(Decision.LOOP_BACK, b) for a, b in graph.back if a == node]
        decision = Decision.STAY
        if moves and rng.random() < 0.25:
            decision, node = rng.choice(moves)
            visit = entered.count(node)
            entered.append(node)
        rows.append(Row(decision, node, visit))
    if rows and rng.random() < 0.3:
        at = rng.randrange(len(rows))
        change = rng.choice(
            [{"node": rng.randint(0, 7)}, {"visit": rng.randint(0, 3)}, {"decision": rng.choice([*Decision])}]
        )
        row = rows[at]
        rows[at] = Row(
            change.get("decision", row.decision), change.get("node", row.node), change.get("visit", row.visit)
        )
    return rows


def random_step(rng: random.Random, *, last: bool) -> Step:
    def action() -> Action:
        shell = rng.random() < 0.85
        kind = rng.random()
        if kind < 0.25:
            chain = [Link.NOOP] * rng.randint(1, 2)
        elif kind < 0.5:
            chain = rng.choices([Link.NOOP, Link.CONSTANT_PRINT], k=rng.randint(1, 3))
        else:
            chain = rng.choices([*Link], k=rng.randint(0, 3))
        script = rng.choices([*Statement], weights=[3, 1], k=rng.choice([0, 0, 1, 2]))
        return Action(shell, rng.randint(0, 3), chain if shell else [], script, rng.random() < 0.2)

    count = rng.choices([0, 1, 2, 3], weights=[2, 8, 1, 1])[0]
    return Step([action() for _ in range(count)], last, rng.random() < 0.2)


def random_evidence(rng: random.Random) -> Evidence:
    if rng.random() < 0.3:
        return Given(rng.choice([-1, 1, None]))
    checks = rng.choices([True, False], weights=[6, 1], k=rng.randint(0, 2))
    if rng.random() < 0.2:
        return Judged(checks, None)
    ballots = [
        Ballot(
            rng.random() < 0.8,
            rng.choices([*Answer], weights=[4, 1, 2], k=rng.randint(0, 3)),
            rng.choice([None, rng.randint(0, 9), rng.randint(0, 9)]),
            rng.randint(0, 9),
        )
        for _ in range(rng.randint(0, 4))
    ]
    return Judged(checks, ballots)


def random_case(rng: random.Random, length: int) -> tuple[Transitions, Rollout, PassRate]:
    graph = random_transitions(rng)
    rows = random_rows(rng, graph, length)
    visits = sorted({(row.node, row.visit) for row in rows})
    evidence = [(visit, random_evidence(rng)) for visit in visits if rng.random() < 0.9]
    steps = [random_step(rng, last=index == length - 1) for index in range(length)]
    known = rng.randint(1, 32)
    rate = PassRate(rng.choice([0, rng.randint(0, known), known, -(-3 * known // 4)]), known)
    return graph, Rollout(rng.choice([-1, 1]), rows, steps, evidence), rate


def legal(graph: Transitions, rows: list[Row]) -> bool:
    node, visit, entered = graph.entry, 0, [graph.entry]
    for row in rows:
        if row.decision is Decision.STAY:
            if (row.node, row.visit) != (node, visit):
                return False
            continue
        arcs = graph.forward if row.decision is Decision.ADVANCE else graph.back
        if (node, row.node) not in arcs or row.visit != entered.count(row.node):
            return False
        node, visit = row.node, row.visit
        entered.append(node)
    return True


def vote(ballot: Ballot) -> bool:
    claimed = Answer.SUPPORT in ballot.chunks and Answer.CONTRADICTION not in ballot.chunks
    return ballot.available and claimed and ballot.quote is not None and ballot.quote <= ballot.segment_end


def beta(evidence: Evidence) -> int | None:
    if isinstance(evidence, Given):
        return evidence.beta
    if not all(evidence.checks):
        return -1
    if evidence.ballots is None:
        return 1
    if not any(ballot.available for ballot in evidence.ballots):
        return None
    votes = [vote(ballot) for ballot in evidence.ballots]
    return 1 if 2 * sum(votes) > len(votes) else -1


def rules(rollout: Rollout) -> list[list[int]]:
    ran: list[tuple[Action, tuple[int, int]]] = []
    answers = []
    for row, step in zip(rollout.rows, rollout.steps, strict=True):
        here = (row.node, row.visit)
        fired = set()
        for action in step.actions:
            if action.is_shell:
                if len(ran) >= 2 and all(a.is_shell and a.text == action.text for a, _ in ran[-2:]):
                    fired.add(1)
                for index, (earlier, place) in enumerate(ran):
                    since = ran[index:]
                    if (
                        earlier.is_shell
                        and earlier.text == action.text
                        and place == here
                        and all(not a.modifies and p == here for a, p in since)
                    ):
                        fired.add(6)
            ran.append((action, here))
        if step.actions:
            if all(a.is_shell and a.chain and set(a.chain) == {Link.NOOP} for a in step.actions):
                fired.add(2)
            if all(a.is_shell and Link.CONSTANT_PRINT in a.chain and Link.OTHER not in a.chain for a in step.actions):
                fired.add(3)
            if all(a.script and set(a.script) == {Statement.LITERAL_PRINT} for a in step.actions):
                fired.add(4)
        elif not step.is_final and not step.excused:
            fired.add(5)
        answers.append(sorted(fired))
    return answers


def answer(graph: Transitions, rollout: Rollout, rate: PassRate) -> Answers:
    betas = [beta(evidence) for _, evidence in rollout.evidence]
    of_visit = {visit: value for (visit, _), value in zip(rollout.evidence, betas, strict=True)}
    fired = rules(rollout)
    tenths = [
        step_tenths(rollout.alpha, of_visit.get((row.node, row.visit)), -1 if rule else 0, in_band=rate.in_process_band)
        for row, rule in zip(rollout.rows, fired, strict=True)
    ]
    return Answers(legal(graph, list(rollout.rows)), betas, fired, tenths)
