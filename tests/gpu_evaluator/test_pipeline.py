"""The cascade over scripted engines: order, aborts, retries, turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from gpu_evaluator.cascade import SELF_CONSISTENCY, CascadePrediction, CascadeRule
from gpu_evaluator.engines.base import EngineFault, Generation, OverLength
from gpu_evaluator.pipeline import GateScore, Limits, Pipeline
from gpu_evaluator.pool import InTurns, Pair, Pool, Stage
from services.contracts.outcomes import Reason, Verdict
from tests.gpu_evaluator.scripted_engines import ScriptedFeedback, ScriptedGate, make_pair, make_pool

GREEDY = CascadeRule()
LIMITS = Limits()


async def predict(
    pool: Pool, programs: Sequence[str], rule: CascadeRule = GREEDY, limits: Limits = LIMITS, **options: object
) -> dict[int, CascadePrediction]:
    """All predictions; fails when one comes twice."""
    found: dict[int, CascadePrediction] = {}
    async with aclosing(Pipeline(pool, limits).predict(programs, rule, **options)) as events:  # type: ignore[arg-type]
        async for index, event in events:
            if isinstance(event, CascadePrediction):
                assert index not in found
                found[index] = event
    return found


def reasons(found: dict[int, CascadePrediction]) -> list[str]:
    return [found[index].reason.value for index in sorted(found)]


async def test_only_what_passes_the_gate_reaches_the_feedback_model() -> None:
    pair = make_pair()
    found = await predict(make_pool(pair), ["good", "bad", "wrong"])
    assert reasons(found) == ["ok", "gate_rejected", "feedback_error"]
    assert sorted(pair.feedback.seen) == ["good", "wrong"]  # type: ignore[attr-defined]
    assert found[2].gate == 0.9
    assert found[2].feedback is Verdict.INVALID


async def test_the_gate_alone_decides_when_asked_so() -> None:
    pair = make_pair()
    found = await predict(make_pool(pair), ["wrong", "bad"], gate_only=True)
    assert reasons(found) == ["ok", "gate_rejected"]
    assert pair.feedback.seen == []  # type: ignore[attr-defined]


async def test_marks_are_stripped_before_any_model_sees_a_program() -> None:
    pair = make_pair()
    await predict(make_pool(pair), ["theorem t <validity>valid</validity>\n/- <feedback> x </feedback> -/\nby simp"])
    for seen in (pair.gate.seen, pair.feedback.seen):  # type: ignore[attr-defined]
        assert len(seen) == 1
        assert "validity>" not in seen[0]
        assert "feedback" not in seen[0]


async def test_identical_programs_are_asked_once_and_answered_each() -> None:
    pair = make_pair()
    found = await predict(make_pool(pair), ["good", "bad", "good", "bad"])
    assert reasons(found) == ["ok", "gate_rejected", "ok", "gate_rejected"]
    assert sorted(pair.gate.seen) == ["bad", "good"]  # type: ignore[attr-defined]


async def test_no_model_is_asked_about_a_blank_program() -> None:
    pair = make_pair()
    assert reasons(await predict(make_pool(pair), ["", " \n", "good"])) == ["no_code", "no_code", "ok"]
    assert pair.gate.seen == ["good"]  # type: ignore[attr-defined]


async def test_the_gate_sees_bounded_chunks_of_the_longest_first() -> None:
    gate = ScriptedGate()
    await predict(make_pool(make_pair(gate=gate)), [f"bad {'x' * n}" for n in range(10)], limits=Limits(4))
    assert gate.chunks == [4, 4, 2]
    assert len(gate.seen[0]) > len(gate.seen[-1])


async def test_a_score_comes_before_its_prediction_and_a_rejection_before_a_slow_trace() -> None:
    pair = make_pair(feedback=ScriptedFeedback(delay_s=0.05))
    events = []
    async with aclosing(Pipeline(make_pool(pair)).predict(["good long enough", "bad"], GREEDY)) as stream:
        async for index, event in stream:
            events.append((index, type(event)))
    assert events == [(0, GateScore), (1, CascadePrediction), (0, CascadePrediction)]


async def test_self_consistency_asks_for_five_traces_and_counts_four() -> None:
    def write(program: str, sampling: object) -> tuple[Generation, ...]:
        bad = program.count("?")
        texts = [f"{program}\n/- <feedback>\n-- type: error, msg: no\n</feedback> -/"] * bad + [program] * (5 - bad)
        return tuple(Generation(text, hit_limit=False) for text in texts)

    pair = make_pair(feedback=ScriptedFeedback(write=write))
    found = await predict(make_pool(pair), ["a ?", "a ??"], SELF_CONSISTENCY)
    assert reasons(found) == ["ok", "feedback_error"]
    assert "3 of 5" in found[1].detail


async def test_a_program_that_does_not_fit_the_feedback_model_is_rejected_without_a_retry() -> None:
    pair, other = (make_pair(feedback=ScriptedFeedback(write=lambda *_: OverLength("9,000 tokens"))) for _ in range(2))
    found = await predict(make_pool(pair, other), ["good"])
    assert reasons(found) == ["feedback_error"]
    assert len(pair.feedback.seen) + len(other.feedback.seen) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", ["dies", "ends", "silent", "not a number", "fault"])
async def test_a_gate_that_fails_in_the_middle_costs_one_retry_on_another_pair(fault: str) -> None:
    broken = {
        "dies": ScriptedGate(dies_after=1),
        "ends": ScriptedGate(ends_after=1),
        "silent": ScriptedGate(delay_s=5),
        "not a number": ScriptedGate(answer=lambda _: float("nan")),
        "fault": ScriptedGate(answer=lambda _: EngineFault("malformed answer")),
    }[fault]
    sound = ScriptedGate()
    pool = make_pool(make_pair("broken", broken), make_pair("sound", sound))
    found = await predict(pool, ["good", "bad", "wrong"], limits=Limits(silence_s=0.2))
    assert reasons(found) == ["ok", "gate_rejected", "feedback_error"]
    assert len(sound.seen) == (2 if fault in ("dies", "ends") else 3)


async def test_a_dead_feedback_model_costs_one_retry_on_another_pair() -> None:
    broken = ScriptedFeedback(dies_after=0)
    pool = make_pool(make_pair("broken", feedback=broken), make_pair("sound"))
    assert reasons(await predict(pool, ["good 1", "good 2", "good 3"])) == ["ok"] * 3
    assert pool.pairs[0].suspected.is_set()


async def test_when_both_pairs_fail_the_program_is_unknown_and_the_fault_is_ours() -> None:
    pool = make_pool(*(make_pair(n, feedback=ScriptedFeedback(dies_after=0)) for n in "ab"))
    found = await predict(pool, ["good", "bad"])
    assert reasons(found) == ["infrastructure", "gate_rejected"]
    assert found[0].verdict is Verdict.UNKNOWN
    assert found[0].gate == 0.9


async def test_alone_in_the_pool_a_dead_engine_leaves_its_programs_unknown_at_once() -> None:
    found = await predict(make_pool(make_pair(gate=ScriptedGate(dies_after=1))), ["aaa", "bb", "c"])
    assert reasons(found) == ["ok", "infrastructure", "infrastructure"]


async def test_what_waits_for_an_engine_that_is_gone_is_answered() -> None:
    pair = make_pair(feedback=ScriptedFeedback(delay_s=30), room=1)
    pool = make_pool(pair)
    asyncio.get_running_loop().call_later(0.1, pool.mark, pair, Stage.GATE, False)
    slow_gate = ScriptedGate(delay_s=0.15)
    pair.gate = slow_gate
    found = await predict(pool, ["bad 1", "bad 2"], limits=Limits(chunk_programs=1))
    assert reasons(found) == ["gate_rejected", "infrastructure"]


async def test_too_many_or_too_few_traces_are_a_fault_of_the_engine() -> None:
    pair = make_pair(feedback=ScriptedFeedback(write=lambda program, _: ()))
    assert reasons(await predict(make_pool(pair), ["good"])) == ["infrastructure"]


async def test_closing_the_stream_aborts_what_the_engines_run() -> None:
    gate, feedback = ScriptedGate(), ScriptedFeedback(delay_s=30)
    pair = make_pair(gate=gate, feedback=feedback)
    stream = Pipeline(make_pool(pair)).predict(["good", "good 2", "bad"], GREEDY)
    while not isinstance((await stream.__anext__())[1], CascadePrediction):
        pass
    await asyncio.sleep(0.01)
    await stream.aclose()
    assert feedback.aborted == 2
    assert pair.in_flight == dict.fromkeys(Stage, 0)
    assert pair.works == dict.fromkeys(Stage, 0)


async def test_work_is_shared_out_by_tokens() -> None:
    gates = [ScriptedGate(delay_s=0.01), ScriptedGate(delay_s=0.01)]
    pool = make_pool(*(make_pair(str(n), gate, room=700) for n, gate in enumerate(gates)))
    long, short = "bad " + "x" * 2000, [f"bad {n} {'y' * 300}" for n in range(6)]
    await predict(pool, [long, *short], limits=Limits(chunk_programs=1))
    assert sorted(len(gate.seen) for gate in gates) == [1, 6]


async def test_a_higher_priority_overtakes_what_waits() -> None:
    gate = ScriptedGate(delay_s=0.02)
    pool = make_pool(make_pair(gate=gate, room=1))
    limits = Limits(chunk_programs=1)
    low = asyncio.create_task(predict(pool, [f"bad low {n}" for n in range(4)], limits=limits))
    await asyncio.sleep(0.01)
    await predict(pool, ["bad high"], limits=limits, priority=5)
    assert gate.seen.index("bad high") == 1
    assert gate.priorities[1] == 5
    await low


def in_turns(**options: float) -> tuple[Pair, list[str]]:
    log: list[str] = []
    gate, feedback = ScriptedGate(log=log, **options), ScriptedFeedback(log=log)  # type: ignore[arg-type]
    return make_pair(gate=gate, feedback=feedback, room=1, swap=InTurns(gate, feedback)), log


async def test_on_one_gpu_all_gates_run_before_the_models_change_over() -> None:
    pair, log = in_turns()
    await pair.gate.start()
    pool = make_pool(pair)
    found = await predict(pool, [f"good {n}" for n in range(6)], limits=Limits(chunk_programs=2))
    assert reasons(found) == ["ok"] * 6
    assert log == ["gate starts", "gate stops", "feedback starts"]
    found = await predict(pool, ["bad", "wrong"])
    assert reasons(found) == ["gate_rejected", "feedback_error"]
    assert log[3:] == ["feedback stops", "gate starts", "gate stops", "feedback starts"]


async def test_no_stage_keeps_the_gpu_for_ever() -> None:
    pair, log = in_turns(delay_s=0.02)
    await pair.gate.start()
    pool = make_pool(pair, longest_turn_s=0.1)
    busy = asyncio.create_task(predict(pool, [f"bad {n}" for n in range(30)], limits=Limits(chunk_programs=1)))
    assert reasons(await predict(pool, ["good"], limits=Limits(chunk_programs=1), priority=1)) == ["ok"]
    assert not busy.done()
    assert "feedback starts" in log
    assert set(reasons(await busy)) == {"gate_rejected"}


async def test_a_failed_change_over_is_an_outage_and_no_verdict() -> None:
    pair, _ = in_turns()
    await pair.gate.start()
    pair.feedback.broken = True  # type: ignore[attr-defined]
    found = await predict(make_pool(pair), ["good", "bad"])
    assert [found[0].reason, found[1].reason] == [Reason.INFRASTRUCTURE, Reason.GATE_REJECTED]
    assert pair.up == dict.fromkeys(Stage, False)
