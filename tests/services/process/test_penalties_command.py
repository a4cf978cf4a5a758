"""`lean-reward penalties`: a table for a person, one JSON object a line for a script."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from services.process.commands import app
from services.process.penalties import penalties_of
from services.process.penalties.table import print_table
from tests.services.process import harness_records as records
from tests.services.process.turns import record


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "steps.json": json.dumps(records.STEPS),
        "stream.jsonl": "\n".join(json.dumps(event) for event in records.CLAUDE_CODE),
        "bad.json": '{"nothing": "known"}',
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in [*contents, "missing.json"]}


def test_json_gives_one_line_for_each_file(files: dict[str, Path]) -> None:
    result = CliRunner().invoke(app, ["--json", str(files["steps.json"]), str(files["stream.jsonl"])])
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    for row in rows:
        assert [(s["step"], r) for s in row["steps"] for r in s["rules"]] == records.PENALTIES
        assert row["steps"][2]["evidence"] == [
            {"rule": 2, "detail": "only no-op commands", "quote": "sleep 5", "earlier_step": None}
        ]


def test_a_file_that_cannot_be_judged_fails_the_command_and_not_its_neighbours(files: dict[str, Path]) -> None:
    paths = [str(files[name]) for name in ("bad.json", "missing.json", "steps.json")]
    result = CliRunner().invoke(app, ["--json", *paths])
    assert result.exit_code == 1
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [("error" in row, row["file"]) for row in rows] == [(True, paths[0]), (True, paths[1]), (False, paths[2])]


def test_a_named_format_is_used(files: dict[str, Path]) -> None:
    result = CliRunner().invoke(app, ["--format", "chat", str(files["steps.json"])])
    assert result.exit_code == 1
    assert "/0/role" in result.output


def test_standard_input_is_a_file_too() -> None:
    result = CliRunner().invoke(app, ["--json", "-"], input=json.dumps(records.STEPS))
    assert json.loads(result.stdout)["file"] == "standard input"


def test_the_table_shows_every_penalty_and_no_escape_sequences() -> None:
    out = io.StringIO()
    console = Console(file=out, width=160)
    print_table("run [1]", penalties_of(record("echo '[bold]\x1b[2J'", "ls", "ls")), console)
    text = out.getvalue()
    assert "run [1]: 4 steps, 2 penalised" in text
    assert "3 constant_shell_output" in text
    assert "6 no_progress_reexecution" in text
    assert "[bold]" in text
    assert "\x1b" not in text
