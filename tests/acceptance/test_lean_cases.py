"""Acceptance cases over HTTP: adversarial and honest programs, judged by the embedded Lean behind the real queue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT.parent / "shared" / "cases" / "lean_cases.sample.json"

pytestmark = [pytest.mark.lean, pytest.mark.slow]


def _code(case: dict[str, Any]) -> str:
    return case["code"] if "code" in case else "".join(text * repeat for text, repeat in case["code_parts"])


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the shared acceptance cases do not lie beside this checkout")
def test_every_case_that_must_come_out_right_does(platform: Any) -> None:
    cases = json.loads(SAMPLE.read_text(encoding="utf-8"))["cases"]
    candidates = [
        {
            "id": case["id"],
            "code": _code(case),
            "header": case["required_header"],
            **({"statement": case["expected_theorem"]["statement"]} if case.get("expected_theorem") else {}),
        }
        for case in cases
    ]
    body = {
        "candidates": candidates,
        "mode": "lean",
        "lean_timeout_s": 60,
        "cutoff": {"policy": "all", "deadline_s": 170},
    }
    with platform.client() as client:
        # Escaped JSON: a case may hold a lone surrogate, which no UTF-8 text can.
        answer = client.post("/v1/proofs/score", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text[:500]
    wrong: dict[str, list[str]] = {"must": [], "prefer": []}
    for case, result in zip(cases, answer.json()["results"], strict=True):
        accepted = result["verdict"] == "valid"
        if accepted != (case["expected_verdict"] == "accept"):
            got = f"{case['id']} ({case['title']}): {result['verdict']}/{result['reason']}: {result['detail']}"
            wrong.setdefault(case["strictness"], []).append(got)
    assert not wrong["must"], "\n".join(wrong["must"])
    print("prefer cases that came out otherwise:", wrong["prefer"])


def test_the_demonstration_set_comes_out_as_it_says(platform: Any) -> None:
    rows = [json.loads(line) for line in (ROOT / "examples" / "proofs.jsonl").read_text(encoding="utf-8").splitlines()]
    candidates = [{name: row[name] for name in row if name not in ("expected", "note")} for row in rows]
    with platform.client() as client:
        answer = client.post("/v1/proofs/score", json={"candidates": candidates, "lean_timeout_s": 15})
    got = {r["id"]: (r["verdict"], r["reason"]) for r in answer.json()["results"]}
    expected = {row["id"]: (row["expected"]["verdict"], row["expected"]["reason"]) for row in rows}
    assert got == expected
