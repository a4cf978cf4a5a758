"""`certify: true`: the kernel's word on what was answered, and what a missing or refusing Lean makes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.contracts.lean import CheckTask, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.runtime.metrics import CERTIFICATES
from tests.acceptance.conftest import start_platform, stop_platform
from tests.reward_gateway.place import IDENTITY, Place, until, valid
from tests.reward_gateway.trajectories.rollouts import betas, group, rollout, segments, steps, workflow
from tests.reward_gateway.trajectories.scripted_judge import Asked, ScriptedJudge, judged, moved

URL = "/v1/trajectories/score"
STRAIGHT = segments((0, 0), (1, 0), (2, 0))


def refusing(name: str) -> Any:
    """Refuses every program that holds the certificate of that name."""

    def judge(task: CheckTask) -> LeanOutcome:
        if f"LeanReward.{name}\n" not in task.code:
            return valid(task)
        return LeanOutcome(
            status=LeanStatus.OK, verdict=Verdict.INVALID, reason=Reason.COMPILE_ERROR, detail="no", identity=IDENTITY
        )

    return judge


def request(*names: str, **fields: Any) -> dict[str, Any]:
    return group(*(rollout(name, workflow=workflow(), segments=STRAIGHT) for name in names), certify=True, **fields)


async def certificates(place: Place, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = await (await place.gateway()).client.post(URL, json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["certificate_library"].startswith("set_option")
    return [result["certificate"] for result in answer["rollouts"]]


async def test_many_rollouts_share_a_program(place: Place) -> None:
    worker = await place.worker(valid)
    made = await certificates(place, request(*(f"x{i}" for i in range(40))))
    assert {certificate["status"] for certificate in made} == {"certified"}
    assert [certificate["theorems"] for certificate in made[:2]] == [["LeanReward.r0.holds"], ["LeanReward.r1.holds"]]
    assert len(worker.checked) == 2


async def test_a_refused_program_is_checked_rollout_by_rollout(place: Place) -> None:
    worker = await place.worker(refusing("r1"))
    made = await certificates(place, request("a", "b", "c"))
    assert [certificate["status"] for certificate in made] == ["certified", "refused", "certified"]
    assert made[1]["detail"] == "compile_error: no"
    assert len(worker.checked) == 4


async def test_without_lean_certificates_are_unavailable_and_the_rewards_are_there(place: Place) -> None:
    made = await certificates(place, request("a"))
    assert made[0]["status"] == "unavailable"
    assert made[0]["program"]


async def test_lean_that_does_not_answer_in_time_is_no_refusal(place: Place) -> None:
    await place.worker(lambda task: None)
    made = await certificates(place, request("a", deadline_s=1))
    assert made[0]["status"] == "unavailable"


async def test_a_rollout_without_stages_or_outcome_has_nothing_to_certify(place: Place) -> None:
    await place.worker(valid)
    made = await certificates(place, group(rollout(), rollout("r2", None, segments=STRAIGHT), certify=True))
    assert [certificate["detail"] for certificate in made] == ["its steps have no stages", "its outcome is not known"]


async def test_nothing_is_certified_unless_asked(place: Place) -> None:
    worker = await place.worker(valid)
    response = await (await place.gateway()).client.post(URL, json={**request("a"), "certify": False})
    assert response.json()["rollouts"][0]["certificate"] is None
    assert response.json()["certificate_library"] is None
    assert not worker.checked


async def test_a_share_of_the_groups_is_certified_after_the_answer(place: Place) -> None:
    worker = await place.worker(valid)
    served = await place.gateway(certify_share=1.0)
    before = CERTIFICATES.labels("certified")._value.get()
    response = await served.client.post(URL, json={**request("a", "b"), "certify": False})
    assert response.json()["rollouts"][0]["certificate"] is None
    await until(lambda: CERTIFICATES.labels("certified")._value.get() == before + 2)
    assert len(worker.checked) == 1


@pytest.mark.lean
@pytest.mark.slow
async def test_lean_certifies_given_and_judged_rollouts(tmp_path: Path) -> None:
    def say(asked: Asked) -> str:
        if asked.prompt == "stage_step":
            return moved("ADVANCE", 1) if "make" in asked.data("CURRENT turn") else moved("STAY")
        if asked.data("Stage to judge").startswith("test"):
            return judged(("support", "a quote that nobody finds"))
        kinds = ["support", "support", "insufficient"]
        return judged((kinds[asked.seed % 1000], "output of step 1, long enough"))

    judge = ScriptedJudge(say)
    await judge.start()
    platform = await asyncio.to_thread(
        start_platform, tmp_path / "up.log", "--workers", "1", LEAN_REWARD_JUDGE_URL=judge.url
    )
    try:
        commands = ("ls", "sleep 5", "pytest", "pytest", None, "make", "ls")
        places = segments((0, 0), (1, 0), (2, 0), (2, 0), (2, 0), (1, 1), (2, 1))
        body = group(
            rollout("given", -1, trajectory=steps(*commands), workflow=workflow(), segments=places,
                    stage_rewards=betas((0, 0, 1), (1, 0, -1), (2, 0, 1), (1, 1, 1))),
            rollout("jumps", -1, trajectory=steps("ls", "ls", "ls", "echo done"), workflow=workflow(),
                    segments=segments((2, 0), (0, 0), (0, 0), (0, 3))),
            rollout("judged", -1, trajectory=steps("ls", "make", "pytest", plan=1), workflow=workflow()),
            rollout("labels", -1, trajectory=steps("ls", "make", stages=["explore", "fix"])),
            certify=True, deadline_s=120,
        )  # fmt: skip
        async with httpx.AsyncClient(base_url=platform.url, timeout=180) as client:
            response = await client.post(URL, json=body)
        assert response.status_code == 200, response.text
        made = [result["certificate"] for result in response.json()["rollouts"]]
        assert [(c["status"], c["detail"]) for c in made] == [("certified", None)] * 4
    finally:
        await asyncio.to_thread(stop_platform, platform)
        await judge.stop()
