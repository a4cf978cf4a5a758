"""`lean-reward report` over recordings, evaluations, exported labels and scored trajectories."""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from reward_gateway.commands import app
from reward_gateway.quality.records import LabelledProgram
from reward_gateway.reports.drift import Said, by_time, measure
from reward_gateway.reports.markdown import escape
from reward_gateway.studies.files import write_rows
from reward_gateway.studies.schema import COLUMNS
from services.contracts.evaluation import EvaluationReport, GroupAccuracy, Measured, Throughput
from services.contracts.evaluator import Confusion
from services.contracts.outcomes import Reason, Verdict
from services.contracts.trajectories import TrajectoryScoreResponse

HOSTILE = '<script>alert("x")</script>|**p**`\n# h'


def _run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def _sections(*arguments: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows by section, each as a dictionary by header."""
    ended = _run(*arguments, "--json")
    assert ended.exit_code == 0, ended.output
    return {
        part["title"]: [dict(zip(part["headers"], row, strict=True)) for row in part["rows"]]
        for part in json.loads(ended.stdout)["sections"]
    }


def _rows(batches: int) -> list[dict[str, Any]]:
    """Four candidates a batch: Lean decided two of them, and the evaluator is wrong on one of these in odd batches."""
    pytest.importorskip("pyarrow")
    blank = {"text": "", "word": "", "count": 0, "number": 0.0, "flag": False, "time": datetime.now(timezone.utc)}
    needed = {column.name: blank[column.kind] for column in COLUMNS if not column.optional}
    rows = []
    for batch in range(batches):
        for index in range(4):
            lean = index < 2
            predicted = "valid" if index % 2 == 0 or batch % 2 else "invalid"
            rows.append(
                {
                    **needed,
                    "batch": f"b{batch}",
                    "received_at": datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=batch),
                    "mode": "hybrid",
                    "cutoff_policy": "evaluator_done",
                    "cutoff_reason": "evaluator_done",
                    "cutoff_s": 2.0,
                    "timeout_s": 60.0,
                    "scheduling": "value",
                    "engines": 2,
                    "index": index,
                    "check": f"k{batch}.{index}",
                    "lean_status": "ok" if lean else "cancelled",
                    "lean_verdict": ("valid" if index == 0 else "invalid") if lean else "unknown",
                    "check_s": 0.5 if lean else None,
                    "cached": False,
                    "predicted": predicted,
                    "gate": 0.5,
                }
            )
    return rows


def _recording(folder: Path, batches: int) -> Path:
    rows = _rows(batches)
    folder.mkdir()
    write_rows(folder / "one.parquet", rows)
    return folder


def _label(number: int, *, audited: bool, right: bool, valid: bool) -> LabelledProgram:
    verdict = Verdict.VALID if valid else Verdict.INVALID
    other = Verdict.INVALID if valid else Verdict.VALID
    return LabelledProgram(
        code="theorem t : True := trivial",
        header="",
        statement=None,
        verdict=verdict,
        reason=Reason.OK,
        toolchain="4.15.0",
        elapsed_s=0.1,
        predicted=verdict if right else other,
        gate=0.5,
        model="m",
        problems="p",
        audited=audited,
        at=float(number),
    )


def _group(name: str, alphas: list[int], beta: int | None, rules: list[int]) -> dict[str, Any]:
    steps = [
        {"step": 0, "phase": "exec", "general_stage": "fix", "gamma": -1 if rules else 0, "rules": rules},
        {"step": 1, "phase": "exec", "general_stage": "verify", "gamma": 0, "rules": []},
    ]
    stages = [
        {"node": 0, "visit": 0, "general_stage": "fix", "steps": 1, "beta": 1},
        {"node": 1, "visit": 0, "general_stage": "verify", "steps": 1, "beta": beta},
    ]
    rollouts = [
        {"id": f"r{n}", "alpha": alpha, "format": "steps", "steps": steps, "stages": stages}
        for n, alpha in enumerate(alphas)
    ]
    rate = alphas.count(1) / len(alphas)
    answer = {
        "group": name,
        "pass_rate": rate,
        "process_band": rate == 0 or rate >= 0.75,
        "rollouts": rollouts,
        "elapsed_s": 0.1,
    }
    return TrajectoryScoreResponse.model_validate(answer).model_dump(mode="json")


def _evaluation(name: str) -> EvaluationReport:
    row = Measured(
        name="gate",
        threshold=0.86,
        selected="largest MCC",
        confusion=Confusion(true_positive=1, true_negative=1),
        accuracy=0.831,
        accuracy_interval=(0.8, 0.85),
        f1=0.8,
        macro_f1=0.8,
        mcc=0.683,
        mcc_interval=None,
        auroc=None,
        recall=0.9,
        false_positive_rate=None,
    )
    return EvaluationReport(
        evaluator=name,
        programs=2,
        valid=1,
        problems=1,
        resamples=5000,
        seed=42,
        verdicts=(row,),
        groups=(GroupAccuracy(by="prover", name="Goedel", programs=2, valid=1, accuracy={"gate": 0.5}),),
        throughput=Throughput(programs=10, seconds=4.0, programs_per_s=2.5),
    )


def test_a_recording_gives_drift_by_step_and_throughput(tmp_path: Path) -> None:
    folder = _recording(tmp_path / "run", 4)
    found = _sections(folder, "--stretches", 2)
    drift = found["Drift by step: run"]
    assert [(row["steps"], row["candidates"], row["Lean share"], row["measured"]) for row in drift] == [
        ("1-2", 8, 0.5, 4),
        ("3-4", 8, 0.5, 4),
    ]
    assert [(row["accuracy"], row["false-positive rate"]) for row in drift] == [(0.75, 0.5), (0.75, 0.5)]
    by_step = _sections(folder)["Drift by step: run"]
    assert [(row["steps"], row["accuracy"], row["false-positive rate"]) for row in by_step] == [
        ("1", 1.0, 0.0),
        ("2", 0.5, 1.0),
        ("3", 1.0, 0.0),
        ("4", 0.5, 1.0),
    ]
    lean, batches = found["Throughput"]
    assert (lean["programs"], lean["a second"]) == (8, 2.0)
    assert (batches["programs"], batches["a second"]) == (8, 1.0)


def test_the_throughput_is_of_all_checks_that_workers_ended_and_of_them_alone(tmp_path: Path) -> None:
    rows = _rows(3)
    for row in rows[4:8]:
        row["batch"] = rows[0]["batch"]  # the id again, at another time
    rows[1] |= {"lean_status": "timeout", "lean_verdict": "unknown", "check_s": 3.5}
    rows[2] |= {"precheck": "no_code", "check": None, "lean_status": "skipped"}
    rows[5] |= {"cached": True}
    for row in rows[8:]:
        row |= {"mode": "evaluator", "lean_status": "skipped", "lean_verdict": "unknown", "check_s": None}
    write_rows(tmp_path / "run.parquet", rows)
    lean, batches = _sections(tmp_path / "run.parquet")["Throughput"]
    assert (lean["programs"], lean["seconds each"]) == (3, 1.5)
    assert (batches["programs"], batches["seconds each"]) == (3, pytest.approx(4 / 3))


def test_drift_over_time_is_of_the_audited_sample_where_there_is_one(tmp_path: Path) -> None:
    labels = [_label(n, audited=n >= 4, right=n < 6, valid=False) for n in range(8)]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(label.model_dump_json() + "\n" for label in reversed(labels)), encoding="utf-8")
    rows = _sections(file, "--stretches", 2)["Drift over time: labels.jsonl"]
    assert [(row["measured"], row["accuracy"]) for row in rows] == [(2, 1.0), (2, 0.0)]
    found, audited = by_time(labels[:4], 1)
    assert not audited
    assert found[0].measured == 4


def test_rates_are_on_candidates_with_both_verdicts() -> None:
    said = [Said(True, True), Said(True, False), Said(False, None), Said(None, True)]
    found = measure("x", said, 0.5)
    assert (found.candidates, found.measured) == (4, 2)
    assert found.accuracy is not None
    assert found.accuracy.rate == 0.5
    assert found.false_positive_rate is not None
    assert found.false_positive_rate.rate == 1.0
    assert measure("x", said[:1], None).false_positive_rate is None


def test_groups_stages_and_rules_of_scored_trajectories(tmp_path: Path) -> None:
    first, second = tmp_path / "step10.jsonl", tmp_path / "step20.json"
    lines = [_group("g1", [1, 1, 1, -1], None, [1, 3]), _group("g2", [-1, 1], -1, [])]
    first.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    second.write_text(json.dumps([_group("g1", [-1, -1], 1, [])]), encoding="utf-8")
    found = _sections(first, second)
    assert [(row["group"], row["pass rate"], row["rewards"], row["penalized"]) for row in found["Groups"]] == [
        ("g1", 0.75, "process", 0.5),
        ("g2", 0.5, "outcome", 0.0),
        ("g1", 0.0, "process", 0.0),
    ]
    assert [row["beta accuracy"] for row in found["Groups"]] == [1.0, 0.5, 1.0]
    stages = {(row["run"], row["general stage"]): row for row in found["Beta accuracy by stage"]}
    verify = stages[first.name, "verify"]
    assert (verify["visits"], verify["with a beta"], verify["beta accuracy"]) == (6, 2, 0.0)
    rules = {row["rule"][0]: row for row in found["Gamma by rule"] if row["run"] == first.name}
    assert (rules["1"]["steps"], rules["1"]["rollouts"], rules["3"]["steps"], rules["2"]["steps"]) == (4, 4, 4, 0)
    assert [row["pass rate"] for row in found["Progress by run"]] == [pytest.approx(4 / 6), 0.0]


def test_runs_of_one_file_name_keep_their_folders(tmp_path: Path) -> None:
    files = [tmp_path / folder / "run.json" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(json.dumps(_group("g", [1, 1], 1, [])), encoding="utf-8")
    assert {row["run"] for row in _sections(*files)["Groups"]} == set(map(str, files))


def test_evaluations_stand_side_by_side(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(_evaluation(name).model_dump_json(), encoding="utf-8")
    found = _sections(*files)
    assert [row["evaluator"] for row in found["Verdict prediction"]] == ["one", "two"]
    assert found["Verdict prediction"][0]["verdict of"] == "gate at 0.86 † largest MCC"
    assert found["Accuracy by prover"][1]["accuracy"] == 0.5
    assert found["Throughput"][0]["seconds each"] == 0.4
    assert "Feedback quality" not in found


class _Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.images += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_one_file_and_a_strangers_text_stays_text(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps(_group(HOSTILE, [1, -1], 1, [2])), encoding="utf-8")
    page, text = tmp_path / "out" / "report.html", tmp_path / "out" / "report.md"
    recording = _recording(tmp_path / "rec", 3)
    assert _run(file, recording, "-o", page, "-o", text, "--title", HOSTILE).exit_code == 0

    seen = _Page()
    seen.feed(page.read_text(encoding="utf-8"))
    assert "script" not in seen.tags
    assert HOSTILE in seen.text
    (image,) = seen.images
    assert image.startswith("data:image/svg+xml;base64,")
    assert b"<svg" in base64.b64decode(image.partition(",")[2])

    markdown = text.read_text(encoding="utf-8")
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) >= 3 for line in tables)
    assert "<script>" not in markdown
    (plot,) = re.findall(r"\]\(<(.*)>\)", markdown)
    assert (text.parent / plot).read_text(encoding="utf-8").startswith("<?xml")


def test_escaped_text_is_one_line_without_markdown() -> None:
    assert escape("a|b\n*c* <d>") == r"a\|b \*c\* \<d\>"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("[]", "is empty"),
        ("nothing", "line 1: no JSON"),
        ("[" * 100_000, "line 1: no JSON"),
        ('{"a": 1}', "line 1: none of"),
        ('{"process_band": true, "rollouts": []}', "line 1: group"),
    ],
)
def test_a_file_that_is_nothing_of_ours_is_named(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content, encoding="utf-8")
    ended = _run(file)
    assert ended.exit_code == 2
    assert said in ended.output


def test_a_file_that_is_given_twice_is_not_counted_twice(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(_group("g", [1, 1], 1, [])), encoding="utf-8")
    ended = _run(file, tmp_path / "." / "run.json")
    assert (ended.exit_code, "is given twice" in ended.output) == (2, True), ended.output


def test_a_time_that_is_no_number_is_named_and_not_printed(tmp_path: Path) -> None:
    rows = _rows(1)
    rows[1]["check_s"] = math.nan
    write_rows(tmp_path / "run.parquet", rows)
    ended = _run(tmp_path / "run.parquet", "--json")
    assert (ended.exit_code, "run.parquet, row 2: check_s is nan" in ended.output) == (2, True), ended.output


def test_the_ending_of_a_report_may_be_in_capitals(tmp_path: Path) -> None:
    file, page = tmp_path / "run.json", tmp_path / "report.HTML"
    file.write_text(json.dumps(_group("g", [1, 1], 1, [])), encoding="utf-8")
    assert _run(file, "-o", page).exit_code == 0
    assert "<table>" in page.read_text(encoding="utf-8")


def test_other_formats_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    ended = _run(tmp_path / "missing.json", "-o", tmp_path / "report.pdf")
    assert ended.exit_code == 2
    assert "report.pdf" in ended.output
