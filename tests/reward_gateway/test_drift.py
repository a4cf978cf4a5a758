"""How good the predictions are: pairs, the audit lane, the guard, and what other gateways and exports see of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.quality.audit import draw
from reward_gateway.scheduling.policies import LABEL_PRIORITY
from services.contracts.evaluator import EvaluatorQuality, QualityWindow
from services.contracts.lean import CheckTask, LeanJob, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.queue import Completion
from tests.reward_gateway.place import IDENTITY, InstantWorker, Place, Served, by_name, candidates, until, valid
from tests.reward_gateway.scripted_evaluator import evaluator


async def window(gateway: Served, *, audited: bool, problems: str = "all") -> QualityWindow | None:
    await gateway.gateway.quality.read()
    quality = EvaluatorQuality.model_validate((await gateway.client.get("/v1/evaluator/quality")).json())
    for found in quality.windows:
        if found.audited_only is audited and found.problems == problems:
            return found
    return None


async def window_of(gateway: Served, pairs: int, *, audited: bool) -> QualityWindow:
    for _ in range(200):
        found = await window(gateway, audited=audited)
        if found is not None and sum(found.confusion.model_dump().values()) >= pairs:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("the pairs were not counted")


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=8), max_size=20))
def test_a_batch_sent_again_draws_the_same_sample(batch: str, keys: list[str]) -> None:
    assert [draw(batch, 0.5)(key) for key in keys] == [draw(batch, 0.5)(key) for key in keys]
    assert not any(draw(batch, 0.0)(key) for key in keys)
    assert all(draw(batch, 1.0)(key) for key in keys)


def test_the_sample_has_its_share_and_differs_between_batches() -> None:
    keys = [str(number) for number in range(20_000)]
    first, second = ({key for key in keys if draw(batch, 0.05)(key)} for batch in ("a", "b"))
    assert 850 < len(first) < 1150
    assert 850 < len(second) < 1150
    assert len(first & second) < 120


async def test_pairs_are_counted_where_both_answered(place: Place) -> None:
    await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    names = ["tp", "wrong_fp", "wrong_eno_tn", "eno_fn", "timeout_t", "slow_s"]
    request = asyncio.create_task(gateway.score(candidates(*names), problems="minif2f"))
    await until(lambda: len(scripted.requests) == 1)
    await asyncio.sleep(0.3)
    scripted.gate.set()
    assert (await request).status_code == 200
    found = await window_of(gateway, 4, audited=False)
    assert (found.confusion.true_positive, found.confusion.false_positive) == (1, 1)
    assert (found.confusion.true_negative, found.confusion.false_negative) == (1, 1)
    assert found.model == "scripted"
    assert found.false_positive_rate is not None
    assert found.false_positive_rate.rate == 0.5
    named = await window(gateway, audited=False, problems="minif2f")
    assert named is not None
    assert named.confusion == found.confusion
    assert await window(gateway, audited=True) is None
    text = (await gateway.client.get("/metrics")).text
    series = 'lean_reward_evaluator_pairs_total{lean="invalid",model="scripted",predicted="valid",problems="minif2f"'
    assert series in text


async def test_the_audit_lane_finishes_its_sample_after_the_cutoff_and_changes_no_reward(place: Place) -> None:
    slow = True

    def judge(task: CheckTask) -> LeanOutcome | None:
        if task.timeout_s == 600:
            return by_name(task.model_copy(update={"code": task.code.replace("slow_", "").replace("timeout_", "")}))
        return None if slow else by_name(task)

    worker = await place.worker(judge=judge)
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url, audit_share=1.0)
    claims: list[Any] = []
    claim = worker.queue.claim

    async def watched(*arguments: Any) -> Any:
        found = await claim(*arguments)
        claims.extend(found)
        return found

    worker.queue.claim = watched  # type: ignore[method-assign]
    names = ["slow_a", "slow_wrong_b", "slow_eno_c"]
    request = asyncio.create_task(gateway.score(candidates(*names)))
    await until(lambda: len(worker.held) == 3)
    scripted.gate.set()
    answer = (await request).json()
    assert [(r["verdict"], r["source"]) for r in answer["results"]] == [
        ("valid", "cascade"),
        ("valid", "cascade"),
        ("invalid", "cascade"),
    ]
    found = await window_of(gateway, 3, audited=True)
    assert (found.confusion.true_positive, found.confusion.false_positive) == (1, 1)
    assert found.confusion.false_negative == 1
    audited = [c for c in claims if c.priority == LABEL_PRIORITY]
    assert {c.timeout_s for c in audited} == {600.0}
    assert all(LeanJob.model_validate_json(c.payload).label_only for c in audited)
    assert len(audited) == 3


async def test_a_timeout_is_audited_with_the_long_limit(place: Place) -> None:
    def judge(task: CheckTask) -> LeanOutcome | None:
        return valid(task) if task.timeout_s == 600 else by_name(task)

    await place.worker(judge=judge)
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, audit_share=1.0)
    answer = (await gateway.score(candidates("timeout_a"), cutoff={"policy": "all"})).json()
    assert answer["results"][0]["source"] == "cascade"
    assert (await window_of(gateway, 1, audited=True)).confusion.true_positive == 1


async def both_answer(gateway: Served, worker: InstantWorker, *names: str, **options: Any) -> None:
    """A batch on which Lean answers after the evaluator, and decides everything."""
    worker.judge = lambda task: None
    body = {"cutoff": {"policy": "all"}, **options}
    request = asyncio.create_task(gateway.score(candidates(*names), **body))

    def predicted() -> bool:
        return all(len(batch.state.predictions) == len(names) for batch in gateway.gateway.batches.running)

    await until(lambda: len(worker.held) == len(names) and predicted())
    worker.judge = by_name
    for token, claim in list(worker.held.items()):
        outcome = by_name(LeanJob.model_validate_json(claim.payload).task)
        assert outcome is not None
        await worker.queue.complete([Completion(claim, outcome.model_dump_json().encode())])
        worker.held.pop(token)
    assert (await request).json()["cutoff"]["reason"] == "decided"


async def distrust(place: Place, guard: str) -> tuple[Served, dict[str, Any]]:
    """A gateway whose audit has seen 20 false positives, and its answer to an unfinished positive."""
    worker = await place.worker()
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, guard=guard, audit_share=1.0)
    await both_answer(gateway, worker, *(f"wrong_{i}" for i in range(20)))
    await window_of(gateway, 20, audited=True)
    answer = await gateway.score(
        candidates("slow_a", "slow_eno_b", "fine"), cutoff={"policy": "evaluator_done", "deadline_s": 5}
    )
    return gateway, answer.json()


async def test_the_guard_withholds_unfinished_positives_of_a_model_that_drifted(place: Place) -> None:
    gateway, answer = await distrust(place, "act")
    told = [(r["verdict"], r["reason"], r["reward"]) for r in answer["results"]]
    assert told[:2] == [("unknown", "evaluator_distrusted", None), ("invalid", "gate_rejected", 0.0)]
    assert answer["results"][0]["evaluator"]["feedback"] == "valid"
    quality = (await gateway.client.get("/v1/evaluator/quality")).json()
    assert (quality["guard"], quality["distrusted"]) == ("act", True)
    ready = (await gateway.client.get("/readyz")).json()
    assert any("false-positive rate above 0.25" in warning for warning in ready["warnings"])
    assert 'lean_reward_evaluator_distrusted{model="scripted"} 1.0' in (await gateway.client.get("/metrics")).text


async def test_a_guard_that_only_warns_changes_no_reward(place: Place) -> None:
    gateway, answer = await distrust(place, "warn")
    assert [r["source"] for r in answer["results"][:2]] == ["cascade", "cascade"]
    assert (await gateway.client.get("/v1/evaluator/quality")).json()["distrusted"] is True


async def test_the_guard_looks_at_the_audit_sample_alone(place: Place) -> None:
    worker = await place.worker()
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, guard="act", audit_share=0.0)
    await both_answer(gateway, worker, *(f"wrong_{i}" for i in range(40)))
    await window_of(gateway, 40, audited=False)
    assert gateway.gateway.quality.distrusted() == frozenset()


async def test_gateways_share_what_they_know_and_a_new_one_starts_with_it(place: Place) -> None:
    gateway, _ = await distrust(place, "act")
    scripted = await evaluator(place.stack)
    other = await place.gateway(evaluator_urls=scripted.url, guard="act")
    await other.gateway.quality.read()
    assert other.gateway.quality.distrusted() == {"scripted"}
    assert other.gateway.quality.report().windows == gateway.gateway.quality.report().windows


async def test_recorded_programs_can_be_exported(place: Place, tmp_path: Any) -> None:
    worker = await place.worker()
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, audit_share=1.0)
    await both_answer(gateway, worker, "good", "wrong_1", problems="demo")
    await window_of(gateway, 2, audited=True)
    environment = {**os.environ, "LEAN_REWARD_QUEUE_URL": place.url, "LEAN_REWARD_QUEUE_PREFIX": place.prefix}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.runtime.cli",
        "label",
        "export",
        "-o",
        str(tmp_path / "labels.jsonl"),
        env=environment,
    )
    assert await process.wait() == 0
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    for row in rows:
        expected = "invalid" if "wrong_" in row["code"] else "valid"
        assert (row["verdict"], row["predicted"], row["problems"]) == (expected, "valid", "demo")
        assert row["audited"]
        assert row["toolchain"] == IDENTITY.toolchain


async def test_checks_of_an_audit_leave_the_queue_when_their_gateway_dies(place: Place) -> None:
    worker = await place.worker(judge=lambda task: None if task.timeout_s == 600 else by_name(task))
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, audit_share=1.0)
    await gateway.score(candidates("timeout_a"), cutoff={"policy": "all"})
    await until(lambda: worker.held, 5)
    noted = await gateway.gateway._redis.hgetall(f"{place.prefix}:home:{gateway.gateway._records.home}:batches")
    assert len(noted) == 1, "another gateway finds it there, and withdraws it"
    await gateway.stop()
    await until(lambda: not worker.held, 3)


async def test_a_check_that_crashes_in_the_audit_labels_nothing(place: Place) -> None:
    crashed = LeanOutcome(status=LeanStatus.CRASHED, verdict=Verdict.UNKNOWN, reason=Reason.INFRASTRUCTURE)
    await place.worker(judge=lambda task: crashed if task.timeout_s == 600 else by_name(task))
    scripted = await evaluator(place.stack)
    gateway = await place.gateway(evaluator_urls=scripted.url, audit_share=1.0)
    await gateway.score(candidates("timeout_a"), cutoff={"policy": "all"})
    await until(lambda: gateway.gateway.quality.lane.current is None, 5)
    assert await window(gateway, audited=True) is None
