"""`docs/studies.md`: its table is the schema, its commands run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_gateway.studies.commands import app
from reward_gateway.studies.schema import COLUMNS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix(".venv/bin/lean-reward ")
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith(".venv/bin/lean-reward ")
]


def test_the_documented_columns_are_those_of_the_schema() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (yes|no) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(c.name, c.kind, "yes" if c.optional else "no", c.meaning) for c in COLUMNS]


def test_the_page_documents_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"replay", "plan"}


# `test_studies_paper.py` runs and reads `--paper`.
@pytest.mark.parametrize("command", [command for command in COMMANDS if "--paper" not in command])
def test_a_documented_command_succeeds(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
