"""The engine against a scripted REPL (`scripted_repl.py`), for faults that a real one shows rarely."""

import asyncio
import os
import time

import psutil
import pytest

from lean_worker.engines.base import Engine, EngineUnavailable, HeaderError
from lean_worker.engines.repl.engine import ReplEngine
from lean_worker.sandbox import Tier, usable
from services.contracts.lean import CheckStatus, CheckTask
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.proofs.verdict import judge

STATEMENT = "theorem t : True"


def task(code="theorem t : True := trivial", fault=None, statement=STATEMENT, **changes):
    text = code if fault is None else f"{code}\n-- fault: {fault}\n"
    return CheckTask(code=text, statement=statement, **{"timeout_s": 10, **changes})


_others: set[int] = set()


async def assert_clean(engine):
    """The next candidate is judged as if nothing had happened."""
    honest = task()
    outcome = judge(honest, await engine.check(honest))
    assert (outcome.verdict, outcome.reason) == (Verdict.VALID, Reason.OK)


@pytest.fixture(autouse=True)
def others():
    """Children that the test session had before, such as a whole platform: not the engine's."""
    global _others
    _others = {child.pid for child in psutil.Process().children(recursive=True)}


def processes_of(engine):
    children = psutil.Process().children(recursive=True)
    return [psutil.Process(child.pid) for child in children if child.pid not in _others]


async def test_it_is_an_engine(scripted):
    engine = await scripted()
    assert isinstance(engine, Engine)
    assert engine.identity.engine == "repl"
    assert engine.identity.toolchain == "leanprover/lean4:v4.20.0"
    assert engine.rss_bytes > 1 << 20


async def test_an_honest_candidate_is_valid_and_another_statement_is_not(scripted):
    engine = await scripted()
    await assert_clean(engine)
    other = task("theorem t : False := trivial")
    assert judge(other, await engine.check(other)).reason is Reason.STATEMENT_MISMATCH
    missing = task("theorem u : True := trivial")
    assert judge(missing, await engine.check(missing)).reason is Reason.STATEMENT_MISMATCH


async def test_it_dies_in_the_middle_of_an_answer(scripted):
    engine = await scripted()
    answer = await engine.check(task(fault="die INTERNAL PANIC: unreachable code"))
    assert answer.status is CheckStatus.CRASHED
    assert "INTERNAL PANIC" in answer.detail
    await assert_clean(engine)


async def test_it_dies_of_its_memory(scripted):
    engine = await scripted()
    answer = await engine.check(task(fault="die INTERNAL PANIC: out of memory"))
    assert answer.status is CheckStatus.OUT_OF_MEMORY
    await assert_clean(engine)


async def test_a_crash_that_repeats_is_the_candidates_own(scripted):
    engine = await scripted()
    crash = task(fault="die")
    assert judge(crash, await engine.check(crash)).verdict is Verdict.UNKNOWN
    outcome = judge(crash, await engine.check(crash), repeated=True)
    assert (outcome.verdict, outcome.reason) == (Verdict.INVALID, Reason.RESOURCE_EXHAUSTED)


@pytest.mark.parametrize("fault", ["malformed", "shape", "twice"])
async def test_what_is_no_answer_is_not_believed(scripted, fault):
    engine = await scripted()
    answer = await engine.check(task(fault=fault))
    assert answer.status is CheckStatus.CRASHED
    await assert_clean(engine)


async def test_a_candidate_that_imitates_a_clean_answer_is_found_out(scripted):
    """It prints a whole answer of its own before the real one, which holds its error."""
    engine = await scripted()
    answer = await engine.check(task("theorem t : True := trivial\n#print nope", fault="twice"))
    assert answer.status is CheckStatus.CRASHED
    await assert_clean(engine)


async def test_it_never_answers(scripted):
    engine = await scripted()
    start = time.monotonic()
    answer = await engine.check(task(fault="hang", timeout_s=0.5))
    assert answer.status is CheckStatus.TIMEOUT
    assert time.monotonic() - start < 2
    assert judge(task(), answer).status is LeanStatus.TIMEOUT
    await assert_clean(engine)


async def test_it_answers_slowly_but_in_time(scripted):
    engine = await scripted()
    answer = await engine.check(task(fault="slow 0.7", timeout_s=5))
    assert answer.status is CheckStatus.DONE
    assert answer.elapsed_s >= 0.7


async def test_five_megabytes_in_one_line_arrive_and_are_cut(scripted):
    engine = await scripted()
    answer = await engine.check(task(fault="big 5000000"))
    assert answer.status is CheckStatus.DONE
    assert answer.messages_truncated
    assert len(answer.messages[0].data) == 8192
    assert judge(task(), answer).verdict is Verdict.VALID


async def test_an_endless_answer_is_cut_off(scripted, monkeypatch):
    monkeypatch.setattr("lean_worker.engines.repl.engine._MOST_OUTPUT", 1 << 20)
    engine = await scripted()
    answer = await engine.check(task(fault="big 3000000"))
    assert answer.status is CheckStatus.CRASHED
    assert "longer than" in answer.detail
    await assert_clean(engine)


async def test_a_flood_on_standard_error_blocks_nothing(scripted):
    engine = await scripted()
    answer = await engine.check(task(fault="stderr 5000000", timeout_s=5))
    assert answer.status is CheckStatus.DONE
    assert answer.elapsed_s < 4


@pytest.mark.parametrize("kind", ["grow", "share"])
async def test_growing_memory_is_stopped(scripted, kind):
    engine = await scripted(memory_mb=256)
    answer = await engine.check(task(fault=kind, timeout_s=30))
    assert answer.status is CheckStatus.OUT_OF_MEMORY
    assert answer.elapsed_s < 20
    await assert_clean(engine)


async def test_processor_time_beyond_its_share_ends_a_check(scripted):
    engine = await scripted(cpus=0.05)
    answer = await engine.check(task(fault="burn", timeout_s=30))
    assert answer.status is CheckStatus.TIMEOUT
    assert answer.elapsed_s < 25
    assert "processors" in answer.detail


async def test_what_is_no_unicode_is_an_error_of_the_program(scripted):
    engine = await scripted()
    broken = task("theorem t : True := trivial -- \ud800")
    assert judge(broken, await engine.check(broken)).reason is Reason.COMPILE_ERROR
    await assert_clean(engine)


async def test_a_filled_private_folder_is_stopped(scripted):
    engine = await scripted(scratch_mb=16)
    answer = await engine.check(task(fault="disk 17", timeout_s=30))
    assert answer.status in (CheckStatus.OUT_OF_MEMORY, CheckStatus.CRASHED)
    assert answer.elapsed_s < 20
    await assert_clean(engine)


async def test_a_child_that_it_leaves_behind_is_killed_with_it(scripted, tmp_path):
    engine = await scripted()
    answer = await engine.check(task(fault=f"child {tmp_path}/pid"))
    assert answer.status is CheckStatus.DONE
    left = psutil.Process(int((tmp_path / "pid").read_text()))
    await engine.restart("growth")
    _, alive = psutil.wait_procs([left], timeout=5)
    assert alive == []
    await assert_clean(engine)


async def test_cancellation_stops_the_repl_within_200_ms(scripted):
    engine = await scripted()
    family = processes_of(engine)
    running = asyncio.create_task(engine.check(task(fault="hang", timeout_s=60)))
    await asyncio.sleep(0.5)
    start = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - start < 0.2
    await asyncio.sleep(max(0.0, 0.2 - (time.monotonic() - start)))
    assert [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    await assert_clean(engine)


async def test_our_own_process_group_is_never_touched(scripted):
    engine = await scripted()
    for process in processes_of(engine):
        assert os.getpgid(process.pid) != os.getpgid(0)
        assert os.getsid(process.pid) != os.getsid(0)


async def test_an_unknown_import_is_the_headers_fault(scripted):
    engine = await scripted()
    bad = task("import Nope\ntheorem t : True := trivial")
    answer = await engine.check(bad)
    assert "Nope" in answer.header_error
    assert judge(bad, answer).reason is Reason.STATEMENT_INVALID
    with pytest.raises(HeaderError, match="Nope"):
        await engine.open("import Nope")
    await assert_clean(engine)


async def test_a_repl_that_exits_at_once_is_our_fault(settings, repl_folder):
    (repl_folder / "mode").write_text("exit")
    engine = ReplEngine(settings())
    with pytest.raises(EngineUnavailable, match="unknown package"):
        await engine.start()
    await engine.stop()


async def test_a_repl_that_says_nothing_is_our_fault(settings, repl_folder):
    (repl_folder / "mode").write_text("silent")
    engine = ReplEngine(settings(start_timeout_s=1.0))
    with pytest.raises(EngineUnavailable, match=r"did not answer|not finished"):
        await engine.start()
    await engine.stop()
    assert processes_of(engine) == []


async def test_nothing_is_left_after_stop(scripted):
    engine = await scripted()
    assert processes_of(engine) != []
    await engine.stop()
    assert processes_of(engine) == []
    assert engine.rss_bytes == 0


async def test_a_process_is_replaced_after_a_number_of_checks(scripted):
    engine = await scripted(max_checks=3)
    seen = set()
    for _ in range(7):
        await assert_clean(engine)
        seen |= {p.pid for p in processes_of(engine) if p.status() != psutil.STATUS_ZOMBIE}
    assert len(seen) == 3


async def test_headers_are_kept_up_to_a_number(scripted):
    engine = await scripted(headers=2)
    first = {p.pid for p in processes_of(engine)}
    await engine.open("import A")
    await engine.open("import B")
    await engine.open("import A")
    assert {p.pid for p in processes_of(engine)} == first
    await engine.open("import C")
    await asyncio.sleep(0.2)
    assert {p.pid for p in processes_of(engine)}.isdisjoint(first)
    await assert_clean(engine)


async def test_a_constant_that_the_kernel_refuses_is_rejected_in_the_replay_tier(scripted):
    engine = await scripted(tier="replay")
    refused = task("theorem t : True := trivial\ntheorem bad : X -- kernel")
    outcome = judge(refused, await engine.check(refused))
    assert (outcome.verdict, outcome.reason) == (Verdict.INVALID, Reason.KERNEL_REJECTED)
    await assert_clean(engine)


async def test_both_spellings_of_the_placeholder_warning_are_known(scripted):
    engine = await scripted()
    hole = task("theorem t : True := by sorry")
    assert judge(hole, await engine.check(hole)).reason is Reason.PLACEHOLDER


async def test_lakes_other_variables_do_not_reach_the_repl(scripted, monkeypatch):
    monkeypatch.setenv("LEAN_REWARD_QUEUE_URL", "redis://:secret@127.0.0.1")
    engine = await scripted()
    (process,) = processes_of(engine)
    assert set(process.environ()) <= {"LEAN_PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE"}


async def test_it_does_not_start_without_a_sandbox_unless_told_so(settings, monkeypatch):
    monkeypatch.setattr("lean_worker.sandbox.detect.fault", lambda tier: f"{tier} does not work here")
    engine = ReplEngine(settings(sandbox="auto"))
    with pytest.raises(EngineUnavailable, match="no sandbox"):
        await engine.start()
    unconfined = ReplEngine(settings(sandbox="off"))
    await unconfined.start()
    assert unconfined.sandbox is Tier.LIMITS
    await unconfined.stop()


@pytest.mark.parametrize("tier", [t for t in usable() if t is not Tier.LIMITS], ids=str)
async def test_it_works_confined_and_its_attempts_are_contained(scripted, tier, tmp_path):
    engine = await scripted(sandbox=str(tier))
    assert engine.sandbox is tier
    await assert_clean(engine)
    assert engine.rss_bytes > 1 << 20
    answer = await engine.check(task(fault=f"child {tmp_path}/pid"))
    assert answer.status is CheckStatus.CRASHED
    assert not (tmp_path / "pid").exists()
    await assert_clean(engine)
    running = asyncio.create_task(engine.check(task(fault="hang", timeout_s=60)))
    await asyncio.sleep(0.3)
    family = processes_of(engine)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0.2)
    assert [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    await assert_clean(engine)


@pytest.mark.parametrize("missing", ["folder", "repl", "lake"])
async def test_what_is_missing_is_named(settings, repl_folder, missing):
    changes = {
        "folder": {"folder": None},
        "repl": {"folder": repl_folder.parent},
        "lake": {"lake": str(repl_folder / "no-lake")},
    }[missing]
    engine = ReplEngine(settings(**changes))
    with pytest.raises(EngineUnavailable, match={"folder": "FOLDER", "repl": "built REPL", "lake": "no-lake"}[missing]):
        await engine.start()
