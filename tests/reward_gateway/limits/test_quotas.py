"""Quotas and priorities of API keys, on a real server, over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import httpx
import pytest

from reward_gateway.gateway import Gateway
from reward_gateway.limits import quotas
from reward_gateway.limits.keys import OWN_WORK, allowed_priority, limits_of
from services.queue.jobs import STEPS
from services.runtime.problems import ProblemError
from services.runtime.settings import KeyLimits, SettingsError
from tests.reward_gateway.place import Place, Served, candidates, until, valid

KEYS = ",".join(f"{name}:{hashlib.sha256(name.encode()).hexdigest()}" for name in ("alice", "bob"))


async def score(gateway: Served, key: str, *names: str, **options: Any) -> httpx.Response:
    body = {"candidates": candidates(*names), **options}
    return await gateway.client.post("/v1/proofs/score", json=body, headers={"Authorization": f"Bearer {key}"})


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_candidates_in_flight_are_bounded_for_each_key_on_all_gateways_together(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    settings = {"keys": KEYS, "key_limits": {"alice": {"max_in_flight": 3}}}
    one, other = await place.gateway(**settings), await place.gateway(**settings)
    running = asyncio.create_task(score(one, "alice", "a", "b"))
    await until(lambda: len(worker.held) == 2)
    refused = await score(other, "alice", "c", "d")
    assert code(refused) == (429, "quota_exceeded")
    assert int(refused.headers["retry-after"]) >= 1
    fits = asyncio.create_task(score(other, "alice", "c"))
    bob = asyncio.create_task(score(other, "bob", "d", "e", "f", "g"))
    await until(lambda: len(worker.held) == 7)
    await worker.finish_held(valid(worker.checked[0]))
    assert {answer.status_code for answer in await asyncio.gather(running, fits, bob)} == {200}
    again = asyncio.create_task(score(one, "alice", "h", "i", "j"))
    await until(lambda: len(worker.held) == 3)
    await worker.finish_held(valid(worker.checked[0]))
    assert (await again).status_code == 200


async def test_a_refused_batch_leaves_nothing_and_its_id_can_be_used_again(place: Place) -> None:
    worker = await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"candidates_per_minute": 2}})
    assert (await score(gateway, "alice", "a", "b")).status_code == 200
    refused = await score(gateway, "alice", "c", batch_id="mine")
    assert code(refused) == (429, "quota_exceeded")
    assert 25 <= int(refused.headers["retry-after"]) <= 31  # one candidate is 30 s
    assert len(worker.checked) == 2
    assert (await score(gateway, "bob", "d", batch_id="mine")).status_code == 200
    await until(lambda: not gateway.gateway.batches.named)


async def test_a_batch_larger_than_the_minutes_quota_passes_when_nothing_is_owed(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"*": {"candidates_per_minute": 2}})
    assert (await score(gateway, "alice", "a", "b", "c", "d")).status_code == 200
    refused = await score(gateway, "alice", "e")
    assert 80 <= int(refused.headers["retry-after"]) <= 91  # four are owed, the fifth makes 150 s, 60 are free


async def test_requests_are_counted_before_their_body_is_read(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"requests_per_minute": 2}})
    answers = [await score(gateway, "alice", "a") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert code(answers[2]) == (429, "quota_exceeded")
    assert (await score(gateway, "bob", "a")).status_code == 200
    penalties = await gateway.client.post(
        "/v1/trajectories/penalties", content=b"not even JSON", headers={"Authorization": "Bearer alice"}
    )
    assert penalties.status_code == 429


async def test_a_key_may_have_smaller_batches_than_others(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"max_batch": 2}})
    assert code(await score(gateway, "alice", "a", "b", "c")) == (413, "too_many_candidates")
    assert (await score(gateway, "bob", "a", "b", "c")).status_code == 200


async def test_what_a_dead_gateway_held_fades_and_what_a_live_one_holds_does_not(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "_HOLD_S", 0.6)
    monkeypatch.setattr(quotas, "_RENEW_S", 0.1)
    await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"max_in_flight": 3}})
    held = gateway.gateway.quotas
    await held.take("alice", "s1", 2)
    await asyncio.sleep(1.0)
    with pytest.raises(ProblemError):
        await held.take("alice", "s2", 2)
    held._held.clear()  # as if its process had been killed
    await asyncio.sleep(0.9)
    await held.take("alice", "s2", 2)


async def test_the_flow_of_a_batch_is_its_key_and_its_priority_what_the_key_allows(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.gateway(
        keys=KEYS, key_limits={"alice": {"max_priority": 5}, "bob": {"priority_offset": -50}}, scheduling="fifo"
    )
    running = [
        asyncio.create_task(score(gateway, "alice", "a", priority=90)),
        asyncio.create_task(score(gateway, "bob", "b", priority=10)),
    ]
    await until(lambda: len(worker.held) == 2)
    assert sorted(claim.priority // STEPS for claim in worker.held.values()) == [-40, 5]
    await worker.finish_held(valid(worker.checked[0]))
    await asyncio.gather(*running)


async def test_two_keys_share_the_workers_equally_however_many_batches_each_has(place: Place) -> None:
    """Alice has ten batches of ten waiting, Bob one of fifty: of the first checks each gets half."""
    worker = await place.worker(judge=lambda task: None)  # makes the gateway accept batches
    worker.tasks[0].cancel()  # it announces itself and takes nothing
    await asyncio.gather(worker.tasks[0], return_exceptions=True)
    gateway = await place.gateway(keys=KEYS)
    batches = [
        asyncio.create_task(score(gateway, "alice", *(f"a{batch}_{i}" for i in range(10)))) for batch in range(10)
    ]
    batches.append(asyncio.create_task(score(gateway, "bob", *(f"b{i}" for i in range(50)))))
    queue = await place.queue()

    for _ in range(500):
        if (await queue.stats()).depth == 150:
            break
        await asyncio.sleep(0.02)
    claims = await queue.claim("observer", 60, 0)
    assert sum(b"theorem b" in claim.payload for claim in claims) == 30
    for batch in batches:
        batch.cancel()
    await asyncio.gather(*batches, return_exceptions=True)


async def test_low_priority_is_refused_first_when_the_queue_is_nearly_full(place: Place) -> None:
    await place.worker(judge=lambda task: None)
    settings = place.settings(shed_from=0.5)
    object.__setattr__(settings.queue, "max_depth", 8)
    place.settings = lambda **_: settings  # type: ignore[method-assign]
    gateway = await place.gateway()
    low = await gateway.score(candidates(*"abcde"), priority=-100)
    assert code(low) == (429, "queue_full")
    assert "the limit is 4" in low.json()["detail"]
    high = await gateway.score(candidates(*"abcde"), priority=100, cutoff={"deadline_s": 0.3})
    assert high.status_code == 200


def test_the_priority_that_a_key_gets() -> None:
    assert allowed_priority(90, KeyLimits(max_priority=10)) == 10
    assert allowed_priority(-90, KeyLimits(max_priority=10)) == -90
    assert allowed_priority(90, KeyLimits(max_priority=10, priority_offset=5)) == 15
    assert allowed_priority(-90, KeyLimits(priority_offset=-50)) == -100
    assert allowed_priority(7, KeyLimits()) == 7


def test_limits_of_every_key_hold_where_a_key_has_none_of_its_own() -> None:
    limits = {"*": KeyLimits(max_batch=1), "alice": KeyLimits(max_in_flight=2)}
    assert limits_of(limits, "alice") == KeyLimits(max_in_flight=2)
    assert limits_of(limits, "bob").max_batch == 1
    assert limits_of(limits, OWN_WORK) == KeyLimits()


async def test_limits_of_an_unknown_key_are_a_mistake_in_the_settings(place: Place) -> None:
    with pytest.raises(SettingsError, match="'carol'"):
        Gateway(place.settings(keys=KEYS, key_limits={"carol": {"max_batch": 1}}))


async def test_what_the_server_could_not_score_counts_against_no_rate(place: Place) -> None:
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"candidates_per_minute": 2, "max_in_flight": 9}})
    for _ in range(4):  # no worker is there
        assert code(await score(gateway, "alice", "a", "b")) == (503, "lean_unavailable")
    await place.worker()
    await gateway.gateway.desk.look()
    assert (await score(gateway, "alice", "a", "b")).status_code == 200
    assert code(await score(gateway, "alice", "c")) == (429, "quota_exceeded")


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/proofs/score", {"candidates": candidates("a", "b", "c", "d")}),
        ("/api/check", {"snippets": [{"id": name, "code": "#check Nat"} for name in "abcd"]}),
        ("/verify", {"codes": [{"custom_id": name, "proof": "#check Nat"} for name in "abcd"]}),
        ("/compat/openrlhf", {"query": list("abcd"), "prompts": [""] * 4, "labels": [""] * 4}),
    ],
)
async def test_the_size_of_a_batch_is_bounded_for_each_key_on_every_route(
    place: Place, route: str, body: dict[str, Any]
) -> None:
    await place.worker()
    gateway = await place.gateway(keys=KEYS, key_limits={"alice": {"max_batch": 3}})
    answers = [
        await gateway.client.post(route, json=body, headers={"Authorization": f"Bearer {key}"})
        for key in ("alice", "bob")
    ]
    assert code(answers[0]) == (413, "too_many_candidates")
    assert answers[1].status_code == 200
