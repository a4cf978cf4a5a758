"""The recorder behind a gateway: what is written, when it is written, and what is never lost."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import math
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reward_gateway.batches.plan import make_plan
from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.studies import recorder as recording
from reward_gateway.studies.cohort import NO, OPEN, YES, CohortError
from reward_gateway.studies.files import arrow_schema, read_rows, write_rows
from reward_gateway.studies.recorded import cohort_of, mix, overhead_s, read_cohort, timeout_s
from reward_gateway.studies.recorder import Recorder
from reward_gateway.studies.replay import Options, replay
from reward_gateway.studies.schema import COLUMNS
from services.contracts.outcomes import Reason, Source
from services.contracts.proofs import Candidate, CutoffReason, ScoreOptions
from services.proofs.precheck import Rejection
from services.runtime import metrics
from services.runtime.settings import GatewaySettings, RecorderSettings, SettingsError
from tests.reward_gateway.place import Place, candidates, theorem, until
from tests.reward_gateway.scripted_evaluator import evaluator

BATCH = [
    {"id": "proved", "group": "a", "code": theorem("eno_good")},
    {"id": "refuted", "group": "a", "code": theorem("wrong_1")},
    {"id": "rejected", "group": "b", "code": "theorem t : 1 = 2 := by sorry"},
    {"id": "believed", "group": "b", "code": theorem("slow_1")},
    {"id": "late", "code": theorem("timeout_1")},
    {"id": "twin", "code": theorem("slow_1"), "statement": "theorem slow_1 : 1 + 1 = 2"},
    {"id": "same", "code": theorem("slow_1")},
    {"id": "other", "code": theorem("slow_2"), "statement": "theorem slow_2 : 1 + 1 = 3"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "recorded here"
    monkeypatch.setenv("LEAN_REWARD_RECORDER_FOLDER", str(path))
    monkeypatch.setenv("LEAN_REWARD_RECORDER_FLUSH_S", "3600")
    return path


def written(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


async def recorded(place: Place, folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A hybrid batch, recorded: its rows, and the answer that its caller got."""
    worker = await place.worker()
    scripted = await evaluator(place.stack, waits=True)
    gateway = await place.gateway(evaluator_urls=scripted.url)
    request = asyncio.create_task(gateway.score(BATCH))
    await until(lambda: len(worker.held) == 3 and scripted.requests)
    scripted.gate.set()
    answer = (await request).json()
    assert not written(folder), "it is not time to write yet"
    await gateway.stop()
    return read_rows(folder), answer


async def test_a_row_says_what_became_of_its_candidate(place: Place, folder: Path) -> None:
    rows, answer = await recorded(place, folder)
    proved, refuted, rejected, believed, late, twin, same, _ = rows
    assert [row["index"] for row in rows] == list(range(8))
    assert {row["cutoff_reason"] for row in rows} == {"evaluator_done"}
    assert [row["cutoff_s"] for row in rows] == pytest.approx([answer["cutoff"]["at_s"]] * 8, abs=1e-5)
    assert (proved["lean_status"], proved["lean_verdict"], proved["check_s"]) == ("ok", "valid", 0.001)
    assert (proved["predicted"], proved["gate"], proved["predicted_reason"]) == ("invalid", 0.1, "gate_rejected")
    assert (refuted["lean_verdict"], refuted["lean_reason"]) == ("invalid", "compile_error")
    assert (rejected["precheck"], rejected["check"], rejected["lean_status"]) == (
        "forbidden_construct",
        None,
        "skipped",
    )
    assert (believed["lean_status"], believed["check_s"], believed["feedback"]) == ("cancelled", None, "valid")
    assert (late["lean_status"], late["lean_verdict"]) == ("timeout", "unknown")
    assert believed["check"] == same["check"] != twin["check"]
    assert believed["program"] == twin["program"]
    assert proved["group"] == refuted["group"] != rejected["group"]
    assert all(0 <= row["lean_at_s"] <= row["cutoff_s"] for row in (proved, refuted, late))
    assert all(row["predicted_at_s"] is None or row["predicted_at_s"] <= row["cutoff_s"] for row in rows)


async def test_names_and_programs_stay_out(place: Place, folder: Path) -> None:
    rows, _ = await recorded(place, folder)
    assert all(row["code"] is None for row in rows)
    assert {row["group"] for row in rows if row["group"]}.isdisjoint({"a", "b"})
    assert b"theorem" not in b"".join(path.read_bytes() for path in written(folder))
    assert stat.S_IMODE((folder / ".secret").stat().st_mode) == 0o600


async def test_names_and_programs_are_recorded_where_they_are_wanted(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_REWARD_RECORDER_CODE", "true")
    rows, _ = await recorded(place, folder)
    assert (rows[0]["code"], rows[0]["group"]) == (theorem("eno_good"), "a")


async def test_a_replay_with_the_recorded_cutoff_gives_the_rewards_that_were_given(place: Place, folder: Path) -> None:
    rows, answer = await recorded(place, folder)
    cohort = cohort_of(rows, "x")
    assert (list(cohort.verdict), list(cohort.known)) == (
        [YES, NO, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN],
        [True, True, False, False, True, False, False, False],
    )
    cutoff_s = rows[0]["cutoff_s"]
    came = replay(cohort, Options(workers=7, cutoff_s=cutoff_s, timeout_s=cutoff_s), cohort.predictions)
    given = [(result["verdict"], result["source"]) for result in answer["results"]]
    assert [(decision.verdict.value, decision.source.value) for decision in came.decisions] == given


async def test_sigterm_loses_nothing(place: Place, folder: Path) -> None:
    await place.worker()
    environment = {**os.environ, "LEAN_REWARD_QUEUE_URL": place.url, "LEAN_REWARD_QUEUE_PREFIX": place.prefix}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.runtime.cli", "gateway", "--port", str(port), env=environment
    )
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            await _until_ready(client)
            answer = await client.post("/v1/proofs/score", json={"candidates": candidates("a", "wrong_b")})
            assert answer.status_code == 200, answer.text
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert [row["lean_verdict"] for row in read_rows(folder)] == ["valid", "invalid"]


async def _until_ready(client: httpx.AsyncClient) -> None:
    while True:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/readyz")).status_code == 200:
                return
        await asyncio.sleep(0.1)


def finished(count: int) -> BatchState:
    plan = make_plan(ScoreOptions(), GatewaySettings())
    state = BatchState(plan, [Candidate(id=f"c{i}", code="x") for i in range(count)], 0.0)
    for _ in range(count):
        state.add(Rejection(Reason.NO_THEOREM, "", None), 0.0)
    return state


CUT = Cut(CutoffReason.DECIDED, 1.0)


async def test_what_a_failing_disk_refused_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failed = recording.write_rows, threading.Event()

    def full_disk(path: Path, rows: Any) -> None:
        if failed.is_set():
            real(path, rows)
        failed.set()
        if len(list(tmp_path.glob("*.parquet"))) == 0:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording, "write_rows", full_disk)
    recorder = Recorder(RecorderSettings(folder=tmp_path, flush_s=0.05), tmp_path, "home")
    recorder.take("b1", finished(3), CUT, 2, 0.0)
    await asyncio.to_thread(failed.wait, 30)
    await recorder.close()
    assert len(read_rows(tmp_path)) == 3


async def test_a_full_buffer_drops_whole_batches_and_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    real = recording.write_rows

    def slow_disk(path: Path, rows: Any) -> None:
        release.wait(60)
        real(path, rows)

    monkeypatch.setattr(recording, "write_rows", slow_disk)
    lost = metrics.RECORDINGS_LOST.labels("buffer")
    before = lost._value.get()
    tiny = RecorderSettings.model_construct(folder=tmp_path, code=False, buffer=10, flush_s=0.01)  # below its bound
    recorder = Recorder(tiny, tmp_path, "home")
    recorder.take("b1", finished(4), CUT, 2, 0.0)
    recorder.take("b2", finished(6), CUT, 2, 0.0)
    recorder.take("b3", finished(1), CUT, 2, 0.0)
    assert lost._value.get() == before + 1
    release.set()
    await recorder.close()
    assert len(read_rows(tmp_path)) == 10


def test_gateways_that_record_in_one_folder_share_its_secret(tmp_path: Path) -> None:
    assert recording._secret(tmp_path) == recording._secret(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".secret"]


def test_a_folder_that_cannot_be_used_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"recorder\.folder"):
        Recorder(RecorderSettings(), tmp_path / "file", "home")


# Files


def test_the_written_schema_is_the_documented_one() -> None:
    schema = arrow_schema()
    assert schema.names == [column.name for column in COLUMNS]
    assert all(field.metadata[b"meaning"].decode() == c.meaning for field, c in zip(schema, COLUMNS, strict=True))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pa.table({"a": [1]}), "is no recorded cohort"),
        (pa.table({"a": [1]}).replace_schema_metadata({"lean_reward.cohort": "99"}), "has version 99"),
        (pa.table({"a": [1]}).replace_schema_metadata({"lean_reward.cohort": "1"}), "lacks the columns batch"),
    ],
)
def test_a_file_that_is_no_cohort_is_refused_with_its_reason(tmp_path: Path, table: pa.Table, says: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    with pytest.raises(CohortError, match=says):
        read_cohort(path)


def test_what_is_no_parquet_or_not_there_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("not parquet")
    for path, says in ((tmp_path, "cannot read"), (tmp_path / "gone", "there is no file or folder")):
        with pytest.raises(CohortError, match=says):
            read_cohort(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CohortError, match=r"holds no \*\.parquet file"):
        read_cohort(tmp_path / "empty")


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def row(index: int, **values: Any) -> Mapping[str, Any]:
    base = {column.name: None for column in COLUMNS}
    return {
        **base,
        "batch": "b",
        "received_at": START,
        "timeout_s": 60.0,
        "engines": 2,
        "index": index,
        "check": f"k{index}",
        "cached": False,
        "misstated": False,
        "lean_status": "ok",
        "lean_verdict": "valid",
        "lean_reason": "ok",
        **values,
    }


def test_the_overhead_of_a_check_is_found_from_when_the_batch_ended() -> None:
    rows = [row(i, check_s=1.0, lean_at_s=(i // 2 + 1) * 1.25) for i in range(10)]
    assert overhead_s(cohort_of(rows, "x")) == pytest.approx(0.25, abs=0.001)
    assert overhead_s(cohort_of(rows[:3], "x")) is None, "too few checks to tell"


def taking_turns(overhead_s: float, **values: Any) -> list[Mapping[str, Any]]:
    """Two batches of ten one-second checks that came together to two engines: one engine each, as turns go."""
    return [
        row(i, batch=name, check=f"{name}{i}", check_s=1.0, lean_at_s=(i + 1) * (1 + overhead_s), **values)
        for name in "ab"
        for i in range(10)
    ]


def test_waiting_for_another_batch_is_no_overhead() -> None:
    assert overhead_s(cohort_of(taking_turns(0.0), "x")) == pytest.approx(0.0, abs=1e-6)
    assert overhead_s(cohort_of(taking_turns(0.25), "x")) == pytest.approx(0.25, abs=0.001)


def test_a_batch_that_shared_the_engines_with_a_cancelled_one_tells_no_overhead() -> None:
    rows = taking_turns(0.25)
    cut = [{**one, "cutoff_s": 9.0} for one in rows]
    cut[19] = {**cut[19], "lean_status": "cancelled", "lean_verdict": "unknown", "check_s": None, "lean_at_s": None}
    assert overhead_s(cohort_of(cut, "x")) is None
    later = [
        row(i, batch="c", check_s=1.0, lean_at_s=(i // 2 + 1) * 1.5, received_at=START + datetime.timedelta(seconds=60))
        for i in range(10)
    ]
    assert overhead_s(cohort_of([*cut, *later], "x")) == pytest.approx(0.5, abs=0.001), "that one was alone"


def test_the_limit_of_a_recording_is_told_where_it_is_one() -> None:
    rows = [row(0, timeout_s=7.0, check_s=7.5, lean_at_s=8.0), row(1, timeout_s=7.0, lean_status="timeout")]
    assert timeout_s(cohort_of(rows, "x")) == 7.0
    with pytest.raises(CohortError, match=r"limits of 7, 60 s: choose one with --timeout"):
        timeout_s(cohort_of([*rows, row(0, batch="c")], "x"))


def test_lean_was_not_asked_in_mode_evaluator_and_the_evaluator_ends_the_batch() -> None:
    alone = {
        "mode": "evaluator",
        "lean_status": "skipped",
        "lean_verdict": "unknown",
        "lean_reason": None,
        "predicted": "invalid",
        "predicted_reason": "gate_rejected",
        "predicted_at_s": 3.0,
    }
    cohort = cohort_of([row(0, **alone), row(1, **alone), row(0, batch="c", check_s=2.0)], "x")
    assert list(cohort.asked) == [False, False, True]
    assert mix(cohort)["cancelled"] == 0
    came = replay(cohort, Options(workers=1), cohort.predictions)
    assert [decision.source for decision in came.decisions] == [Source.CASCADE, Source.CASCADE, Source.LEAN]
    assert list(came.scoring_s) == [3.0, 2.0]


def test_a_status_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CohortError, match="cannot be used"):
        cohort_of([row(0, lean_status="maybe")], "x")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"check_s": math.nan}, r"x\.parquet, row 2: check_s is nan"),
        ({"check_s": -1.0}, r"x\.parquet, row 2: check_s is -1\.0"),
        ({"lean_at_s": math.inf}, r"x\.parquet, row 2: lean_at_s is inf"),
        ({"lean_verdict": "perhaps"}, r"x\.parquet, row 2: lean_verdict is 'perhaps'"),
        ({"index": 0}, "holds candidate 0 of batch b twice"),
    ],
)
def test_a_row_without_meaning_is_named(tmp_path: Path, values: dict[str, Any], says: str) -> None:
    told = {"mode": "lean", "cutoff_policy": "all", "cutoff_reason": "all", "cutoff_s": 9.0, "scheduling": "fifo"}
    write_rows(tmp_path / "x.parquet", [row(0, **told), {**row(1, **told), **values}])
    with pytest.raises(CohortError, match=says):
        read_cohort(tmp_path / "x.parquet")


def test_an_answer_that_took_its_whole_limit_is_still_an_answer() -> None:
    cohort = cohort_of([row(0, check_s=60.2, lean_at_s=61.0)], "x")
    assert cohort.labelled.all()
    assert list(cohort.verdict) == [YES]


def test_without_pyarrow_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SettingsError, match=r"lean-reward\[studies\]"):
        Recorder(RecorderSettings(), tmp_path, "home")
    with pytest.raises(CohortError, match=r"lean-reward\[studies\]"):
        read_cohort(tmp_path)
