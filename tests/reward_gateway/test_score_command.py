"""`lean-reward score FILE`: the job it runs, its table, what it says when something is wrong."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from reward_gateway import score
from services.contracts.outcomes import Reason, Verdict
from services.contracts.proofs import ScoreResponse
from tests.reward_gateway.place import Place, Served, theorem


async def run(gateway: Served, file: Path, *options: str) -> Result:
    arguments = [str(file), "--url", str(gateway.client.base_url), *options]
    return await asyncio.to_thread(CliRunner().invoke, score.app, arguments)


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "proofs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


async def test_what_the_precheck_decides_is_shown_and_written(place: Place, tmp_path: Path) -> None:
    gateway = await place.http()
    rows = [{"id": f"c{i}", "code": "example : True := trivial"} for i in range(3)]
    written = tmp_path / "out" / "results.jsonl"
    result = await run(gateway, write(tmp_path, *rows), "--json", "-o", str(written))
    assert result.exit_code == 0, result.output
    response = ScoreResponse.model_validate_json(result.stdout.splitlines()[-1])  # this gateway logs to the same output
    assert [found.reason for found in response.results] == [Reason.NO_THEOREM] * 3
    assert len(written.read_text().splitlines()) == 3


async def test_a_job_that_is_done_at_once_is_fetched(place: Place, tmp_path: Path) -> None:
    """A batch whose id is known: its job is done, without its result, before anybody can follow it."""
    await place.worker()
    gateway = await place.http()
    body = {"candidates": [{"id": "a", "code": theorem("a")}], "batch_id": "b"}
    await gateway.client.post("/v1/proofs/score", json=body)

    def once_more() -> ScoreResponse:
        with httpx.Client(base_url=gateway.client.base_url) as client:
            job = client.post("/v1/proofs/jobs", json=body).json()
            assert (job["state"], job.get("result")) == ("done", None)
            return score._run_job(client, body, Console(file=io.StringIO()))

    found = await asyncio.to_thread(once_more)
    assert [result.verdict for result in found.results] == [Verdict.VALID]


async def test_what_was_expected_and_did_not_come_is_marked_and_ends_with_1(place: Place, tmp_path: Path) -> None:
    await place.worker()
    gateway = await place.http()
    file = write(
        tmp_path,
        {"id": "right", "code": theorem("a"), "expected": {"verdict": "valid"}},
        {"id": "other", "code": theorem("wrong_b"), "expected": {"verdict": "valid"}, "note": "no"},
    )
    result = await run(gateway, file)
    assert result.exit_code == 1
    assert "1 of 2 as expected" in result.stdout
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "!" in rows["other"]
    assert "!" not in rows["right"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no candidate"),
        ('{"code": 1}\n', "line 1"),
        ('{"code": "x"}\n{"code": "x", "colour": 1}\n', "line 2"),
        ("[]\n", "a candidate is a JSON object"),
        ("[" * 100_000, "line 1: maximum recursion depth"),
    ],
)
async def test_a_file_that_cannot_be_used_ends_with_2(place: Place, tmp_path: Path, text: str, message: str) -> None:
    gateway = await place.http()
    (tmp_path / "bad.jsonl").write_text(text)
    result = await run(gateway, tmp_path / "bad.jsonl")
    assert result.exit_code == 2
    assert message in result.stderr


async def test_no_gateway_ends_with_2_and_says_what_to_do(tmp_path: Path) -> None:
    file = write(tmp_path, {"id": "a", "code": theorem("a")})
    arguments = [str(file), "--url", "http://127.0.0.1:9"]
    result = await asyncio.to_thread(CliRunner().invoke, score.app, arguments)
    assert result.exit_code == 2
    assert "lean-reward up" in result.stderr


def response() -> ScoreResponse:
    def one(name: str, verdict: str, reason: str, detail: str | None) -> dict[str, Any]:
        lean = {"status": "ok", "elapsed_s": 12.3456}
        return {
            "id": name,
            "verdict": verdict,
            "reward": {"valid": 1.0, "invalid": 0.0, "unknown": None}[verdict],
            "source": "fallback" if verdict == "unknown" else "precheck",
            "reason": reason,
            "detail": detail,
            "lean": lean,
        }

    results = [
        one("c1", "valid", "ok", None),
        one("an-identifier-that-is-longer-than-any-column-may-be", "invalid", "resource_exhausted", "x" * 70),
        one("[red]c3", "unknown", "evaluator_distrusted", "two\nlines [bold] " + "y" * 500),
    ]  # fmt: skip
    stats = {"candidates": 3, "prechecked": 0, "cached": 0, "duplicates": 0, "lean_share": 1.0, "elapsed_s": 0.2}
    cutoff = {"reason": "decided", "at_s": 1.0}
    return ScoreResponse.model_validate({"batch_id": "b", "cutoff": cutoff, "results": results, "stats": stats})


@pytest.mark.parametrize("width", [80, 100, 129, 130, 140, 250])
@pytest.mark.parametrize("terminal", [False, True])
def test_the_table_fits_and_hides_no_verdict(width: int, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    answer = response()
    results = list(answer.results)
    score._print(console, results, [answer], score._Input(expected={"c1": {}}), [results[1]], 100)
    lines = out.getvalue().splitlines()
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    for index, result in enumerate(results):
        row = lines[3 + index]
        for cell in (result.verdict.value, result.source.value, result.reason.value, "12346 ms"):
            assert cell in row
    assert "invalid !" in lines[4]
    assert "[red]c3" in lines[5]
    assert "x" * 20 in out.getvalue(), "details are there, in the table or behind it"
    assert "3 candidates in 0.2 s (15/s): 1 invalid, 1 unknown, 1 valid" in " ".join(out.getvalue().split())
