"""The acceptance cases of the penalty rules, from our own steps and from each harness's own record."""

from __future__ import annotations

from typing import Any

import pytest

from services.process.penalties import gamma
from services.process.trajectories import read_trajectory
from tests.conftest import load_cases

CASES = load_cases("gamma_cases.sample.json")
FORMS = [(case, form) for case in CASES for form in ("steps", "raw") if form in case]


def pairs(entries: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {(entry["step"], entry["rule"]) for entry in entries}


@pytest.mark.skipif(not CASES, reason="the acceptance cases are not beside this checkout")
@pytest.mark.parametrize(("case", "form"), FORMS, ids=[f"{case['id']}-{form}" for case, form in FORMS])
def test_every_expected_penalty_is_found_and_no_other(case: dict[str, Any], form: str) -> None:
    found = {(row.step, rule) for row in gamma(read_trajectory(case[form])) for rule in row.rules}
    assert pairs(case["expected"]) <= found <= pairs(case["expected"]) | pairs(case["optional"])
