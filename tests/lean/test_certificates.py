"""Python and Lean agree: certificates of random rollouts are accepted, and of falsified ones refused."""

from __future__ import annotations

import dataclasses
import random

import pytest
from rollouts import answer, random_case

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckStatus, CheckTask, Severity
from services.process.certificates.claims import Answers, Decision, Rollout, Row, Step, Transitions
from services.process.certificates.emit import Certificate, certify, program
from services.rewards.band import PassRate

IDLE = Step([], True, False)


def falsified(answers: Answers, rng: random.Random) -> Answers:
    """One wrong answer."""
    at = rng.randrange(len(answers.rules))
    choice = rng.choice(["segmentation", "penalties", "rewards"] + ["votes"] * bool(answers.betas))
    if choice == "segmentation":
        return dataclasses.replace(answers, legal=not answers.legal)
    if choice == "votes":
        betas = list(answers.betas)
        index = rng.randrange(len(betas))
        betas[index] = {1: -1, -1: None, None: 1}[betas[index]]
        return dataclasses.replace(answers, betas=betas)
    if choice == "penalties":
        rules = [list(fired) for fired in answers.rules]
        other = rng.randint(1, 6)
        rules[at] = [rule for rule in range(1, 7) if (rule in rules[at]) != (rule == other)]
        return dataclasses.replace(answers, rules=rules)
    tenths = list(answers.reward_tenths)
    tenths[at] = rng.choice([value for value in (-12, -10, -8, 5, 10, 15) if value != tenths[at]])
    return dataclasses.replace(answers, reward_tenths=tenths)


async def refused(lean: EmbeddedEngine, certificates: list[Certificate]) -> set[str]:
    """The full names of the theorems that Lean did not accept."""
    code = program(certificates)
    answer = await lean.check(CheckTask(code=code, timeout_s=300, messages=True))
    assert answer.status is CheckStatus.DONE, answer.detail
    lines = code.split("\n")
    names = set()
    for message in answer.messages:
        if message.severity is Severity.ERROR:
            assert message.pos is not None
            at = message.pos.line - 1
            assert lines[at].startswith("theorem "), (lines[at][:200], message.data)
            space = next(line for line in reversed(lines[:at]) if line.startswith("namespace "))
            names.add(f"{space.split()[1]}.{lines[at].split()[1]}")
    return names


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("seed", [1, 2])
async def test_python_and_lean_agree_on_random_rollouts(lean: EmbeddedEngine, seed: int) -> None:
    rng = random.Random(seed)
    honest, lies = [], []
    for index in range(20):
        graph, rollout, rate = random_case(rng, rng.randint(1, 10))
        answers = answer(graph, rollout, rate)
        honest.append(certify(f"honest{index}", graph, rollout, rate, answers))
        lies.append(certify(f"lie{index}", graph, rollout, rate, falsified(answers, rng)))
    assert await refused(lean, honest) == set()
    assert await refused(lean, lies) == {lie.theorem for lie in lies}


def test_a_certificate_names_its_theorem() -> None:
    made = certify("r1", Transitions(0, [], []), Rollout(1, [], [], []), PassRate(0, 1), Answers(True, [], [], []))
    assert made.theorem == "LeanReward.r1.holds"
    assert "theorem holds : " in made.text


@pytest.mark.parametrize("name", ["", "R", "1a", "a b", "a.b", "a\nend LeanReward", "é"])
def test_a_name_cannot_carry_anything_else(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        certify(name, Transitions(0, [], []), Rollout(1, [], [], []), PassRate(0, 1), Answers(True, [], [], []))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (Answers(True, [], [[]], []), "different lengths"),
        (Answers(True, [1], [], []), "1 betas for 0 stages"),
    ],
)
def test_answers_of_the_wrong_shape_are_refused(answers: Answers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        certify("r1", Transitions(0, [], []), Rollout(1, [], [], []), PassRate(0, 1), answers)


@pytest.mark.parametrize(
    ("rollout", "answers", "message"),
    [
        (Rollout(1, [Row(Decision.STAY, 1 << 32, 0)], [IDLE], []), Answers(True, [], [[]], [10]), "does not fit"),
        (Rollout(1, [Row(Decision.STAY, -1, 0)], [IDLE], []), Answers(True, [], [[]], [10]), "does not fit"),
        (Rollout(1, [Row(Decision.STAY, 0, 0)], [IDLE], []), Answers(True, [], [[7]], [10]), "no penalty rule"),
        (Rollout(1, [Row(Decision.STAY, 0, 0)], [IDLE], []), Answers(True, [], [[]], [20]), "no reward"),
        (Rollout(0, [Row(Decision.STAY, 0, 0)], [IDLE], []), Answers(True, [], [[]], [10]), "neither -1 nor 1"),
    ],
)
def test_what_has_no_room_in_a_packed_claim_is_refused(rollout: Rollout, answers: Answers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        certify("r1", Transitions(0, [], []), rollout, PassRate(0, 1), answers)
