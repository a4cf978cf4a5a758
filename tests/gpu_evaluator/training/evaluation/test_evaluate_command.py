"""`lean-reward evaluate` over files, and an evaluator asked over real HTTP and in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gpu_evaluator.commands import app
from gpu_evaluator.engines.linear.engine import LinearFeedback, LinearGate
from gpu_evaluator.pool import Pair, Stage
from gpu_evaluator.training.evaluation.asking import AskError, ask_all, at_url
from gpu_evaluator.training.evaluation.commands import _saving
from gpu_evaluator.training.evaluation.programs import read_predictions
from services.contracts.evaluation import EvaluationReport
from services.contracts.evaluator import Prediction
from services.contracts.outcomes import Reason, Verdict
from tests.gpu_evaluator.served import serve

STATE = "/- <feedback>\n-- proof state:\n⊢ 1 = 1\n</feedback> -/\n"
ERROR = "/- <feedback>\n-- type: error, msg: no\n</feedback> -/"


def _code(number: int, valid: bool) -> str:
    return f"theorem t{number} : {number} = {number} := by\n  {'rfl' if valid else 'nope'}"


def _label(number: int, **more: Any) -> dict[str, Any]:
    """Three attempts on each problem, the first of them valid."""
    valid = number % 3 == 0
    code = _code(number, valid)
    head, tactic = code.split("\n")
    trace = f"{head}\n{STATE}{tactic}" + ("" if valid else f"\n{ERROR}")
    return {
        "id": f"c{number}",
        "group": f"p{number // 3}",
        "code": code,
        "verdict": "valid" if valid else "invalid",
        "reason": "ok",
        "trace": trace,
        "toolchain": "4.15.0",
        **more,
    }


def _prediction(number: int, gate: float, feedback: str | None, **more: Any) -> dict[str, Any]:
    accepted = gate >= 0.5 and feedback == "valid"
    trace = None if feedback is None else _label(number)["trace"]
    return {
        "id": f"c{number}",
        "verdict": "valid" if accepted else "invalid",
        "reason": "ok" if accepted else "gate_rejected" if gate < 0.5 else "feedback_error",
        "gate": gate,
        "feedback": feedback,
        "trace": trace,
        "detail": None,
        "elapsed_s": 0.1,
        **more,
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _good_predictions(count: int) -> list[dict[str, Any]]:
    """The gate lets every second wrong one through, which the feedback model rejects."""
    return [
        _prediction(n, 0.9, "valid")
        if n % 3 == 0
        else _prediction(n, 0.7, "invalid")
        if n % 3 == 1
        else _prediction(n, 0.2, None)
        for n in range(count)
    ]


def _run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def _report(*arguments: Any) -> EvaluationReport:
    ended = _run(*arguments, "--json", "--resamples", 50)
    assert ended.exit_code == 0, ended.output
    return EvaluationReport.model_validate_json(ended.stdout)


def test_every_table_follows_from_labels_and_predictions(tmp_path: Path) -> None:
    rows = [_label(n, benchmark="miniF2F" if n < 30 else "ProofNet", prover=f"prover{n % 2}") for n in range(60)]
    labels = _write(tmp_path / "labels.jsonl", rows)
    validation = _write(tmp_path / "validation.jsonl", [{**_label(n), "id": f"c{n}"} for n in range(60, 90)])
    predictions = _write(tmp_path / "predictions.jsonl", _good_predictions(90))
    report = _report(labels, "-p", predictions, "--validation", validation, "--prevalence", 0.1)

    assert (report.programs, report.valid, report.problems, report.validation_programs) == (60, 20, 20, 30)
    evaluator, gate, *selected = report.verdicts
    assert (evaluator.name, evaluator.accuracy, evaluator.auroc) == ("evaluator", 1.0, None)
    assert evaluator.mcc == pytest.approx(1.0)
    assert (gate.name, gate.accuracy, gate.recall, gate.false_positive_rate) == ("gate", pytest.approx(2 / 3), 1.0, 0.5)
    assert gate.auroc == 1.0
    assert gate.accuracy_gain == pytest.approx(-1 / 3)
    assert gate.precision_at[0].precision == pytest.approx(0.1 / (0.1 + 0.9 * 0.5))
    assert {(row.name, row.threshold, row.selected) for row in selected} == {
        ("gate", 0.71, "largest MCC"),
        ("gate", 0.71, "evaluator's false-positive rate"),
        ("gate", 0.9, "evaluator's recall"),
        ("evaluator", 0.21, "largest MCC"),
    }
    assert all(row.accuracy == 1.0 for row in selected)
    assert {(row.by, row.name) for row in report.groups} == {
        ("benchmark", "ProofNet"),
        ("benchmark", "miniF2F"),
        ("prover", "prover0"),
        ("prover", "prover1"),
    }
    assert [(row.subset, row.programs, row.block_f1, row.blocks) for row in report.feedback] == [
        ("all", 40, 1.0, 1.0),
        ("valid", 20, 1.0, 1.0),
        ("invalid", 20, 1.0, 1.0),
    ]
    assert report.acceptance is not None
    assert report.acceptance.predicted_error == 20
    assert report.source is not None
    assert (report.source.full, report.source.other) == (40, 0)
    assert [pools.benchmark for pools in report.replay] == ["ProofNet", "miniF2F", "all"]
    assert report.replay[-1].coverage[0].cascade == 1.0
    assert report.replay[-1].coverage[0].random < 1.0


def test_what_has_no_prediction_is_counted_and_not_measured(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(9)])
    predictions = _good_predictions(6)
    predictions[1] = {"id": "c1", "verdict": "unknown", "reason": "not_decided", "gate": None}
    predictions.append({"id": "c2", "verdict": "unknown", "reason": "not_decided", "gate": 0.7})  # news, no prediction
    report = _report(labels, "-p", _write(tmp_path / "predictions.jsonl", predictions))
    assert report.programs == 5
    assert report.left_out == {"not_decided": 1, "no_prediction": 3}


def test_programs_on_which_the_evaluator_failed_change_the_exit_status(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(4)])
    predictions = _good_predictions(4)
    predictions[0] = {"id": "c0", "verdict": "unknown", "reason": "infrastructure"}
    ended = _run(labels, "-p", _write(tmp_path / "predictions.jsonl", predictions), "--resamples", 5)
    assert ended.exit_code == 1
    assert "1 infrastructure" in ended.stdout


def test_an_export_brings_its_own_predictions(tmp_path: Path) -> None:
    rows = []
    for n in range(12):
        row = _label(
            n, predicted="valid" if n % 2 else "invalid", gate=0.8 if n % 2 else 0.1, model="m", problems="src"
        )
        rows.append({name: value for name, value in row.items() if name not in ("id", "trace", "group")})
    report = _report(_write(tmp_path / "export.jsonl", rows))
    assert (report.evaluator, report.programs, report.problems) == ("m", 12, 12)
    assert report.verdicts[1].auroc == pytest.approx(0.5)
    assert [pools.benchmark for pools in report.replay] == ["src"]


def test_parquet_is_read_as_json_lines_are(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    labels, predictions = [_label(n) for n in range(9)], _good_predictions(9)
    parquet.write_table(pyarrow.Table.from_pylist(labels), tmp_path / "labels.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(predictions), tmp_path / "predictions.parquet")
    from_parquet = _report(tmp_path / "labels.parquet", "-p", tmp_path / "predictions.parquet")
    lines = _write(tmp_path / "labels.jsonl", labels), _write(tmp_path / "predictions.jsonl", predictions)
    assert from_parquet == _report(lines[0], "-p", lines[1])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert _run(tmp_path / "broken.parquet").exit_code == 2
    parquet.write_table(pyarrow.Table.from_pylist([{**labels[0], "verdict": "maybe"}]), tmp_path / "odd.parquet")
    assert "row 1: verdict" in _run(tmp_path / "odd.parquet").output


def test_two_evaluators_are_compared_on_the_programs_of_both_and_on_the_same_resamples(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(30)])
    ours = _write(tmp_path / "ours.jsonl", _good_predictions(30))
    same = _write(tmp_path / "same.jsonl", _good_predictions(27))
    other = _report(labels, "-p", ours, "--against", same).verdicts[-1]
    assert (other.name, other.accuracy_gain, other.accuracy_gain_interval) == ("same", 0.0, (0.0, 0.0))
    everything = [{"id": f"c{n}", "verdict": "valid"} for n in range(30)]
    report = _report(labels, "-p", ours, "--against", _write(tmp_path / "all.jsonl", everything))
    assert report.verdicts[-1].accuracy_gain == pytest.approx(-2 / 3)
    assert report.verdicts[-1].recall == report.verdicts[-1].false_positive_rate == 1.0
    assert _report(labels, "-p", ours, "--against", same).left_out == {"not_judged_by_both": 3}


def test_votes_rank_the_evaluator(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(6)])
    predictions = [{**row, "score": 1.0 if row["verdict"] == "valid" else 0.2} for row in _good_predictions(6)]
    report = _report(labels, "-p", _write(tmp_path / "predictions.jsonl", predictions))
    assert report.verdicts[0].auroc == 1.0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no labelled program"),
        ([{**_label(0), "verdict": "unknown"}], "line 1: no verdict"),
        ([_label(0), _label(0)], "line 2: the id 'c0' again"),
        ([{"id": "x", "verdict": "valid"}], "line 1: code"),
    ],
)
def test_labels_that_cannot_be_used_are_named(rows: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    ended = _run(_write(tmp_path / "labels.jsonl", rows), "-p", _write(tmp_path / "p.jsonl", _good_predictions(1)))
    assert ended.exit_code == 2
    assert said in ended.output


def test_one_class_alone_leaves_rates_open(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in (0, 3, 6)])
    report = _report(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(7)))
    gate = report.verdicts[1]
    assert (gate.false_positive_rate, gate.auroc, gate.recall) == (None, None, 1.0)


def test_validation_programs_of_one_class_select_nothing(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(6)])
    validation = _write(tmp_path / "validation.jsonl", [_label(n) for n in (6, 9)])
    report = _report(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(10)), "--validation", validation)
    assert [row.selected for row in report.verdicts] == [None, None]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_curves_are_drawn(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(12)])
    plot = tmp_path / f"curves{suffix}"
    _report(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(12)), "--plot", plot)
    assert plot.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    assert _run(labels, "--plot", tmp_path / "curves.gif").exit_code == 2


@pytest.mark.parametrize("asking", [("--url", "http://127.0.0.1:9"), ("--engine", "linear"), ("--method", "gate")])
def test_given_predictions_are_not_asked_for(asking: tuple[str, str], tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(3)])
    ended = _run(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(3)), *asking)
    assert ended.exit_code == 2
    assert f"leave {asking[0]} out" in ended.output, "or its name would stand on somebody else's predictions"


@pytest.mark.parametrize("option", ["--save", "--plot"])
def test_a_folder_that_is_not_there_is_said_before_anything_is_asked(option: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(3)])
    ended = _run(labels, "--url", "http://127.0.0.1:9", option, tmp_path / "none" / "file.svg")
    assert ended.exit_code == 2
    assert "there is no folder" in ended.output.replace("\n", "")


def test_tables_say_nothing_of_what_was_not_asked(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in (1, 2)])
    ended = _run(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(3)), "--resamples", 5)
    assert ended.exit_code == 0, ended.output
    assert "validation programs" not in ended.output
    assert "Pools with a valid proof" not in ended.output


async def test_an_evaluator_at_a_url_is_asked_for_every_program() -> None:
    pair = Pair("linear", LinearGate(None), LinearFeedback(None), {Stage.GATE: 10_000, Stage.FEEDBACK: 10_000})
    programs = {f"c{n}": _code(n, n % 2 == 0) for n in range(19)} | {"c19": "theorem t : True := by \ud800"}
    seen: list[int] = []
    async with serve([pair]) as served:
        await served.until_ready()
        async with at_url(str(served.client.base_url), None, 10.0) as ask:
            answers = await ask_all(ask, programs, None, lambda _, done: seen.append(done))
    assert {p.id for p in answers.predictions} == set(programs)
    assert seen == list(range(1, 21))
    assert all(p.gate is not None for p in answers.predictions)


async def test_nobody_at_the_url_is_said() -> None:
    async with at_url("http://127.0.0.1:9", None, 1.0) as ask:
        with pytest.raises(AskError, match=r"127\.0\.0\.1:9"):
            await ask_all(ask, {"c": "theorem t : True := trivial"}, None, lambda *_: None)


def _export(path: Path, numbers: range) -> Path:
    return _write(
        path, [_label(n, predicted="valid" if n % 3 == 0 else "invalid", gate=0.5, model="m") for n in numbers]
    )


def test_an_exports_predictions_are_not_measured_beside_those_of_another_evaluator(tmp_path: Path) -> None:
    export, labels = _export(tmp_path / "export.jsonl", range(6)), tmp_path / "labels.jsonl"
    _write(labels, [_label(n) for n in range(6, 12)])
    ended = _run(export, "--validation", labels)
    assert (ended.exit_code, "the validation programs have no predictions" in ended.output) == (2, True), ended.output
    ended = _run(labels, "--validation", export)
    assert (ended.exit_code, "the test programs have no predictions" in ended.output) == (2, True), ended.output
    assert _report(export, "--validation", _export(tmp_path / "v.jsonl", range(6, 12))).evaluator == "m"
    ended = _run(export, "--method", "gate")
    assert (ended.exit_code, "leave --method out" in ended.output) == (2, True), ended.output


def test_validation_programs_without_predictions_are_said(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(6)])
    validation = _write(tmp_path / "validation.jsonl", [_label(n) for n in range(6, 9)])
    ended = _run(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(6)), "--validation", validation)
    assert (ended.exit_code, "no validation program has a prediction" in ended.output) == (2, True), ended.output


def test_another_evaluators_file_without_a_verdict_is_named(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(6)])
    predictions = _write(tmp_path / "p.jsonl", _good_predictions(6))
    ended = _run(labels, "-p", predictions, "--against", _write(tmp_path / "other.jsonl", []))
    assert ended.exit_code == 2
    assert "other.jsonl has no verdict" in ended.output.replace("\n", "")


def test_only_problems_of_one_benchmark_are_the_same(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n, benchmark="miniF2F") for n in range(6)])
    predictions = _write(tmp_path / "p.jsonl", _good_predictions(12))
    for benchmark, warned in (("miniF2F", True), ("ProofNet", False)):
        rows = [_label(n, benchmark=benchmark) | {"group": f"p{n // 3 - 2}"} for n in range(6, 12)]
        validation = _write(tmp_path / "validation.jsonl", rows)
        ended = _run(labels, "-p", predictions, "--validation", validation, "--resamples", 5)
        assert ("2 problems are in the test" in ended.output) is warned


def test_a_file_of_labels_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [{**_label(n), "id": None} for n in range(3)])
    ended = _run(labels, tmp_path / "." / "labels.jsonl")
    assert (ended.exit_code, "is given twice" in ended.output.replace("\n", "")) == (2, True), ended.output


def test_answers_that_could_not_be_read_again_are_not_asked_for(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(3)])
    before = labels.read_text(encoding="utf-8")
    nameless = _write(tmp_path / "nameless.jsonl", [{**_label(n), "id": None} for n in range(3)])
    shared = _write(tmp_path / "shared.jsonl", [_label(n) for n in (2, 3)])
    nobody, saved = ("--url", "http://127.0.0.1:9"), tmp_path / "saved.jsonl"
    saved.write_text("earlier", encoding="utf-8")
    for arguments, says in (
        ((labels, "--save", labels), "is read here"),
        ((nameless, "--save", saved), "has no id"),
        ((labels, "--validation", shared, "--save", saved), "the id 'c2' is of a test and of a validation program"),
        ((labels, "--save", tmp_path / "saved.parquet"), "would be read as Parquet"),
        ((labels, "--save", saved), "127.0.0.1:9"),
    ):
        ended = _run(*arguments, *nobody)
        assert (ended.exit_code, says in ended.output.replace("\n", "")) == (2, True), ended.output
    assert (labels.read_text(encoding="utf-8"), saved.read_text(encoding="utf-8")) == (before, "earlier")


def test_answers_are_kept_as_they_come(tmp_path: Path) -> None:
    saved = tmp_path / "saved.jsonl"
    passed = Prediction(id="0.1", verdict=Verdict.UNKNOWN, reason=Reason.NOT_DECIDED, gate=0.7)
    with _saving(saved, {"0.0": "c0", "0.1": "c1"}) as keep:
        keep(passed)
        keep(Prediction.model_validate({**_prediction(0, 0.9, "valid"), "id": "0.0"}))
        assert list(read_predictions([saved])) == ["c0"], "an interrupted run has them"
        assert len(saved.read_text(encoding="utf-8").splitlines()) == 1, "news is no answer"


@pytest.mark.filterwarnings("error")
def test_one_class_alone_is_drawn_without_a_complaint(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in (0, 3, 6)])
    plot = tmp_path / "curves.PNG"
    _report(labels, "-p", _write(tmp_path / "p.jsonl", _good_predictions(7)), "--plot", plot)
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_the_engine_of_the_settings_is_asked_and_its_answers_kept(tmp_path: Path) -> None:
    labels = _write(tmp_path / "labels.jsonl", [_label(n) for n in range(6)])
    saved = tmp_path / "saved.jsonl"
    command = [sys.executable, "-m", "services.runtime.cli", "evaluate", str(labels), "--save", str(saved), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
    assert ended.returncode == 0, ended.stderr
    report = EvaluationReport.model_validate_json(ended.stdout)
    assert (report.evaluator, report.programs) == ("linear", 6)
    assert report.throughput is not None
    again = _report(labels, "-p", saved)
    assert again.verdicts[0].confusion == report.verdicts[0].confusion
