"""`lean-reward settings`: whole names, and values as they can be set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from services.contracts.outcomes import Profile
from services.runtime.commands import app, shown
from services.runtime.settings import describe, load_settings


def test_what_is_printed_can_be_set_and_gives_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_settings()
    rows = json.loads(CliRunner().invoke(app, ["--json"]).stdout)
    assert [row["variable"] for row in rows] == [variable for variable, *_ in describe()]
    for row in rows:
        if row["value"] is not None:
            monkeypatch.setenv(row["variable"], row["value"])
    assert load_settings() == before


def test_the_printed_list_is_a_list_of_assignments() -> None:
    lines = CliRunner().invoke(app, []).stdout.splitlines()
    assert all(len(line) <= 120 for line in lines)
    assignments = dict(line.split("=", 1) for line in lines if not line.startswith(" "))
    assert list(assignments) == [variable for variable, *_ in describe()]
    assert assignments["LEAN_REWARD_GATEWAY_PROFILE"] == "strict"
    assert json.loads(assignments["LEAN_REWARD_VLLM_COMMAND"]) == ["vllm", "serve"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (Profile.PAPER, "paper"),
        (("a", Path("/b")), '["a", "/b"]'),
        ((), "[]"),
        (1.5, "1.5"),
        (SecretStr(""), ""),
        (SecretStr("key"), "**********"),
    ],
)
def test_how_a_value_is_shown(value: object, text: str | None) -> None:
    assert shown(value) == text
