"""Single-sample calls: joined, answered once, within their limit, and honest about what nobody decided."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from services.contracts.lean import CheckTask, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason
from services.runtime.settings import load_settings
from tests.reward_gateway.place import Place, Served, theorem, until


def _settings(place: Place, **compat: Any) -> Any:
    return load_settings(
        queue={"url": place.url, "prefix": place.prefix},
        gateway={"port": 0, "deadline_s": 20.0},
        compat=compat,
    )


async def served(place: Place, monkeypatch: pytest.MonkeyPatch, **compat: Any) -> Served:
    monkeypatch.setattr(place, "settings", lambda **_: _settings(place, **compat))
    return await place.http()


def body(name: str, **label: Any) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": "Prove it."}],
        "response": f"So:\n```lean\n{theorem(name)}\n```",
        "label": {"statement": f"theorem {name} : 1 + 1 = 2", **label},
    }


async def post(gateway: Served, name: str, **label: Any) -> httpx.Response:
    return await gateway.client.post("/compat/slime", json=body(name, **label))


async def test_right_and_wrong_samples_get_their_rewards_as_json(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    right = await post(gateway, "t")
    assert right.headers["content-type"] == "application/json"
    assert right.json() == {
        "score": 1.0,
        "status": "decided",
        "verdict": "valid",
        "source": "lean",
        "reason": "ok",
        "detail": None,
    }
    wrong = (await post(gateway, "wrong_t")).json()
    assert (wrong["score"], wrong["status"], wrong["reason"]) == (0.0, "decided", "compile_error")


async def test_calls_that_arrive_together_are_one_batch(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.worker()
    gateway = await served(place, monkeypatch, window_s=0.5)
    sizes: list[int] = []
    start = gateway.gateway.batches.start_unnamed
    monkeypatch.setattr(
        gateway.gateway.batches,
        "start_unnamed",
        lambda o, b, **kw: (sizes.append(len(b.candidates)), start(o, b, **kw))[1],
    )
    answers = await asyncio.gather(*(post(gateway, f"t{i}" if i % 2 else f"wrong_{i}") for i in range(40)))
    assert [answer.json()["score"] for answer in answers] == [float(i % 2) for i in range(40)]
    assert sizes == [40]


async def test_equal_calls_in_flight_are_checked_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await place.worker(judge=lambda _: None)
    gateway = await served(place, monkeypatch)
    first = asyncio.create_task(post(gateway, "t"))
    await until(lambda: worker.held)
    again = [asyncio.create_task(post(gateway, "t")) for _ in range(5)]
    await asyncio.sleep(0.3)
    assert len(gateway.gateway.batches.running) == 1
    await worker.finish_held(LeanOutcome(status=LeanStatus.OK, verdict="valid", reason=Reason.OK))
    assert {(await call).json()["score"] for call in (first, *again)} == {1.0}
    assert len(worker.checked) == 1


async def test_a_group_waits_until_it_is_complete(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await place.worker()
    gateway = await served(place, monkeypatch, group_wait_s=20)
    group = {"group": 7, "group_size": 3}
    calls = [asyncio.create_task(post(gateway, name, **group)) for name in ("a", "b")]
    await asyncio.sleep(0.4)
    assert not worker.checked
    calls.append(asyncio.create_task(post(gateway, "b", **group)))  # equal to another one of its group: it counts
    assert [(await call).json()["score"] for call in calls] == [1.0, 1.0, 1.0]
    assert len(worker.checked) == 2


async def test_an_incomplete_group_goes_on_after_its_wait_and_its_rest_waits_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.worker()
    gateway = await served(place, monkeypatch, group_wait_s=0.5)
    group = {"group": "p", "group_size": 8}
    begin = time.monotonic()
    assert (await post(gateway, "a", **group)).json()["score"] == 1.0
    assert time.monotonic() - begin >= 0.5
    begin = time.monotonic()
    assert (await post(gateway, "b", **group)).json()["score"] == 1.0
    assert time.monotonic() - begin < 0.45


async def test_the_earliest_call_sets_the_limit_and_what_is_undecided_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.worker()
    gateway = await served(place, monkeypatch, limit_s=1.5, window_s=0.3, undecided=-0.5)
    begin = time.monotonic()
    first = asyncio.create_task(post(gateway, "slow_a"))
    await asyncio.sleep(0.2)
    late = await post(gateway, "slow_b")
    assert time.monotonic() - begin < 2.5
    said = {key: late.json()[key] for key in ("score", "status", "verdict", "source", "reason")}
    assert said == {
        "score": -0.5,
        "status": "fallback",
        "verdict": "unknown",
        "source": "fallback",
        "reason": "not_decided",
    }
    assert (await first).json()["score"] == -0.5


async def test_a_time_limit_of_lean_is_a_fallback_that_names_it(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    said = (await post(gateway, "timeout_t")).json()
    assert (said["status"], said["reason"]) == ("fallback", "lean_timeout")


async def test_an_outage_is_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = await served(place, monkeypatch, limit_s=20)
    call = asyncio.create_task(post(gateway, "t"))
    await asyncio.sleep(1.0)
    await place.worker()
    assert (await call).json()["score"] == 1.0


@pytest.mark.parametrize(("on_failure", "status"), [("error", 503), ("fallback", 200)])
async def test_an_outage_that_stays_is_what_the_setting_says(
    place: Place, monkeypatch: pytest.MonkeyPatch, on_failure: str, status: int
) -> None:
    gateway = await served(place, monkeypatch, limit_s=1.0, on_failure=on_failure, undecided=-1)
    answer = await post(gateway, "t")
    assert answer.status_code == status
    if status == 200:
        assert (answer.json()["score"], answer.json()["status"]) == (-1.0, "fallback")
        assert answer.json()["reason"] == "infrastructure"
    else:
        assert answer.json()["code"] == "lean_unavailable"
        assert int(answer.headers["retry-after"]) > 0


def crashed(task: CheckTask) -> LeanOutcome:
    return LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE, detail="twice")


async def test_a_crash_of_ours_is_never_a_silent_zero(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.worker(judge=crashed)
    gateway = await served(place, monkeypatch)
    assert (await post(gateway, "t")).status_code == 503


async def test_who_hangs_up_cancels_the_check_unless_others_wait(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await place.worker(judge=lambda _: None)
    gateway = await served(place, monkeypatch)
    one = asyncio.create_task(post(gateway, "t"))
    two = asyncio.create_task(post(gateway, "t"))
    await until(lambda: worker.held)
    await asyncio.sleep(0.2)
    one.cancel()
    await asyncio.sleep(0.4)
    assert worker.held
    two.cancel()
    await until(lambda: not worker.held)
    await until(lambda: not gateway.gateway.batches.running)
    assert gateway.gateway.budget.held == 0


async def test_too_much_in_flight_waits_for_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.worker()
    gateway = await served(place, monkeypatch)
    gateway.gateway.batches._admission._max_batches = 0
    call = asyncio.create_task(post(gateway, "t"))
    await asyncio.sleep(0.5)
    assert not call.done()
    gateway.gateway.batches._admission._max_batches = 8
    assert (await call).json()["score"] == 1.0


async def test_the_key_may_stand_in_the_url_and_owners_are_not_joined(place: Place) -> None:
    import hashlib

    await place.worker()
    keys = ",".join(f"{name}:{hashlib.sha256(name.encode()).hexdigest()}" for name in ("alpha", "beta"))
    gateway = await place.http(keys=keys)
    assert (await post(gateway, "t")).status_code == 401
    url = f"http://alpha:@{gateway.client.base_url.host}:{gateway.client.base_url.port}/compat/slime"
    async with httpx.AsyncClient() as client:
        assert (await client.post(url, json=body("t"))).json()["score"] == 1.0
    bearer = await gateway.client.post("/compat/slime", json=body("t"), headers={"Authorization": "Bearer beta"})
    assert bearer.json()["score"] == 1.0


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [({"response": 5}, "/response"), ({"response": "x", "label": 7}, "/label"), ({"prompt": "p"}, "/response")],
)
async def test_a_malformed_call_is_refused_precisely(place: Place, sent: dict[str, Any], pointer: str) -> None:
    gateway = await place.gateway()
    answer = await gateway.client.post("/compat/slime", json=sent)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_openrlhf_gets_lists_of_numbers(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    prompt = "Prove it, as in ```lean\ntheorem example_of : True := trivial\n```\n"
    codes = [f"```lean\n{theorem(name)}\n```" for name in ("t", "wrong_t", "timeout_t")] + ["no code"]
    answer = await gateway.client.post(
        "/compat/openrlhf",
        json={
            "query": [prompt + code for code in codes],
            "prompts": [prompt] * 4,
            "labels": [f"theorem {name} : 1 + 1 = 2" for name in ("t", "wrong_t", "timeout_t", "t")],
        },
    )
    assert answer.json() == {
        "rewards": [1.0, 0.0, 0.0, 0.0],
        "scores": [1.0, 0.0, 0.0, 0.0],
        "extra_logs": {"fallback": [0.0, 0.0, 1.0, 0.0], "lean": [1.0, 1.0, 0.0, 0.0]},
    }
    uneven = await gateway.client.post("/compat/openrlhf", json={"query": ["a"], "prompts": [], "labels": ["s"]})
    assert uneven.status_code == 422
