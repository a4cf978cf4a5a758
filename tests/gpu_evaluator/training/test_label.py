"""Labelling through a real queue; Lean is scripted where a fault is needed, and real where traces are."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_evaluator.feedback.verdict import judge_trace
from gpu_evaluator.training.label import Labeller, LabelRules, Tally
from gpu_evaluator.training.records import LabelFile, ProgramRecord, RecordError, read_labels, read_programs
from services.contracts.lean import EngineIdentity, LeanJob, LeanOutcome, Message, Position, Severity, TacticState
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from services.queue import Completion, JobQueue, connect
from services.queue.server import EmbeddedServer

RULES = LabelRules(header="", profile=Profile.STRICT, heartbeats=800_000)
IDENTITY = EngineIdentity(engine="scripted", toolchain="4.15.0", environment="none")


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as running:
        yield running


def scripted_lean(job: LeanJob) -> LeanOutcome:
    """Judge by the name of the theorem, as a worker would answer."""
    code = job.task.code
    assert job.label_only
    assert job.task.tactics
    assert job.task.timeout_s == 180
    if "slow" in code:
        return LeanOutcome(status=LeanStatus.TIMEOUT, reason=Reason.LEAN_TIMEOUT)
    if "broken" in code:
        return LeanOutcome(status=LeanStatus.CRASHED, reason=Reason.INFRASTRUCTURE)
    position = Position(line=2, column=2)
    if "wrong" in code:
        message = Message(severity=Severity.ERROR, data="unsolved goals", pos=position)
        verdict, reason, messages = Verdict.INVALID, Reason.COMPILE_ERROR, (message,)
    else:
        verdict, reason, messages = Verdict.VALID, Reason.OK, ()
    state = TacticState(tactic="simp", pos=position, end_pos=position, goals_before=("⊢ 1 + 1 = 2",), goals_after=())
    return LeanOutcome(
        status=LeanStatus.OK, verdict=verdict, reason=reason, messages=messages, tactics=(state,), identity=IDENTITY
    )


async def run(
    url: str,
    prefix: str,
    records: list[ProgramRecord],
    path: Path,
    judge: Callable[[LeanJob], LeanOutcome] = scripted_lean,
) -> tuple[Tally, list[str]]:
    """Label with a worker that judges by `judge`; also what the worker was given."""
    redis = connect(url)
    queue = JobQueue(redis, prefix=prefix)
    given: list[str] = []

    async def work() -> None:
        while True:
            for claim in await queue.claim("scripted", 16, 1.0):
                job = LeanJob.model_validate_json(claim.payload)
                given.append(job.task.code)
                await queue.complete([Completion(claim, judge(job).model_dump_json().encode())])

    worker = asyncio.create_task(work())
    file = LabelFile(path)
    try:
        return await asyncio.wait_for(Labeller(queue, file, RULES, lambda tally: None).run(records), 20), given
    finally:
        file.close()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        await redis.aclose()


def program(name: str) -> ProgramRecord:
    return ProgramRecord(id=name, code=f"theorem {name} : 1 + 1 = 2 := by simp\n")


async def test_verdicts_and_traces_are_written_and_the_rest_is_excluded(server: EmbeddedServer, tmp_path: Path) -> None:
    names = ["right", "wrong", "slow", "broken"]
    records = [*map(program, names), ProgramRecord(id="gives_up", code="theorem t : 1 = 2 := by sorry")]
    records[0] = records[0].model_copy(update={"benchmark": "miniF2F", "prover": "one"})
    tally, _ = await run(server.url, "a", records, tmp_path / "labels.jsonl")
    assert (tally.valid, tally.invalid, tally.faults) == (1, 1, 1)
    assert tally.excluded == {"lean_timeout": 1, "forbidden_construct": 1}
    labels = {label.id: label for label in read_labels(tmp_path / "labels.jsonl")}
    assert set(labels) == {"right", "wrong"}
    assert labels["right"].verdict is Verdict.VALID
    assert labels["right"].toolchain == "4.15.0"
    assert labels["right"].program == program("right").code  # what was labelled, where it is not what ran
    assert (labels["right"].benchmark, labels["right"].prover) == ("miniF2F", "one")
    assert labels["right"].trace == (
        "theorem right : 1 + 1 = 2 := by\n  /- <feedback>\n  -- proof state:\n  ⊢ 1 + 1 = 2\n  </feedback> -/\n  simp\n"
    )
    assert "-- type: error, msg: unsolved goals" in labels["wrong"].trace


async def test_a_second_run_goes_on_where_the_first_ended(server: EmbeddedServer, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    records = [program(name) for name in ("right", "slow", "broken", "wrong")]
    await run(server.url, "b", records, path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "cut of')  # the machine went down here
    _, given = await run(server.url, "b2", [*records, program("right_too")], path)
    assert len(given) == 2
    assert {"broken" in given[0], "broken" in given[1]} == {True, False}  # an infrastructure fault is tried again
    assert [label.id for label in read_labels(path)] == ["right", "wrong", "right_too"]


async def test_more_programs_than_fit_at_once_all_get_a_label(server: EmbeddedServer, tmp_path: Path) -> None:
    records = [program(f"right{n}") for n in range(600)]
    tally, given = await run(server.url, "c", records, tmp_path / "labels.jsonl")
    assert tally.valid == 600
    assert len(given) == 600


async def test_the_same_program_under_another_id_runs_once(server: EmbeddedServer, tmp_path: Path) -> None:
    first, second = program("right"), ProgramRecord(id="again", code=program("right").code)
    tally, given = await run(server.url, "d", [first, second], tmp_path / "labels.jsonl")
    assert (tally.valid, len(given)) == (1, 1)
    assert tally.excluded == {"duplicate": 1}


async def test_a_cancelled_run_leaves_nothing_in_the_queue(server: EmbeddedServer, tmp_path: Path) -> None:
    redis = connect(server.url)
    queue = JobQueue(redis, prefix="e")
    file = LabelFile(tmp_path / "labels.jsonl")
    running = asyncio.create_task(Labeller(queue, file, RULES, lambda tally: None).run([program("right")]))
    for _ in range(200):
        if (await queue.stats()).depth:
            break
        await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert (await queue.stats()).depth == 0
    file.close()
    await redis.aclose()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{"], "line 1: no JSON"),
        (["[" * 100_000], "line 1: no JSON"),
        ([json.dumps({"id": "a"})], "line 1: code"),
        ([json.dumps({"id": "a", "code": "x"})] * 2, "line 2: the id of line 1 again"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(lines: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "programs.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(RecordError, match=said):
        list(read_programs(path))


@pytest.mark.lean
def test_the_command_labels_with_the_embedded_lean_and_writes_its_goals(tmp_path: Path) -> None:
    programs, labels = tmp_path / "programs.jsonl", tmp_path / "labels.jsonl"
    lines = [
        {"id": "right", "code": "theorem t (a b : Nat) : a + b = b + a := by omega", "statement": None},
        {"id": "wrong", "code": "theorem t (a b : Nat) : a + b = b := by\n  simp\n  omega\n"},
        {"id": "other", "code": "theorem t : 1 = 1 := rfl", "statement": "theorem t : 1 = 2"},
    ]
    programs.write_text("\n".join(json.dumps(line) for line in lines))
    command = [sys.executable, "-m", "services.runtime.cli", "label", str(programs), "-o", str(labels)]
    done = subprocess.run([*command, "--workers", "1", "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"valid": 1, "invalid": 2, "faults": 0, "excluded": {}}
    found = {label.id: label for label in read_labels(labels)}
    assert found["right"].trace == (
        "theorem t (a b : Nat) : a + b = b + a := by\n"
        "  /- <feedback>\n  -- proof state:\n  a : Nat\n  b : Nat\n  ⊢ a + b = b + a\n  </feedback> -/\n"
        "  omega"
    )
    assert "-- type: error, msg: omega could not prove the goal" in found["wrong"].trace
    assert judge_trace(found["wrong"].trace, hit_limit=False).valid is False
    assert found["other"].reason is Reason.STATEMENT_MISMATCH
