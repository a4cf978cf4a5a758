"""`lean-reward score FILE.jsonl`: send a file of candidates to a gateway, watch it, read the table."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import typer

from reward_gateway.client import describe_problem
from services.contracts.base import MAX_CANDIDATES
from services.contracts.jobs import Job, JobEventName, JobProgress, JobState
from services.contracts.problems import Problem
from services.contracts.proofs import Candidate, CandidateResult, CutoffPolicy, Mode, ScoreResponse

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

app = typer.Typer()

_EXPECTED = "expected"  # a line may say what verdict it should get: {"verdict": ..., "reason": ...}
_IGNORED = ("note",)
_RETRY_S = 30.0
_LONGEST_DETAIL = 200
_WIDTH_OF_DETAILS = 130  # columns of a terminal that has room for them in the table
_WIDTHS = {"verdict": 9, "reward": 6, "source": 8, "reason": 20, "check": 9}
_WIDTH_WITHOUT_TERMINAL = 140


class ScoreError(Exception):
    """The file or the gateway cannot be used; the message says where and why."""


@dataclass
class _Input:
    candidates: list[dict[str, Any]] = field(default_factory=list)
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)


@app.command("score")
def score(
    file: Path = typer.Argument(help="JSON lines: one candidate a line, as in `POST /v1/proofs/score`."),
    url: str = typer.Option(None, help="The gateway; default: the setting client.url."),
    output: Path = typer.Option(None, "--output", "-o", help="Write one result a line to this file."),
    mode: Mode = typer.Option(None, help="Who may decide; default: the server's."),
    policy: CutoffPolicy = typer.Option(None, "--cutoff", help="The event that ends a batch; default: the server's."),
    deadline: float = typer.Option(None, "--deadline", min=0.001, help="The latest cutoff, seconds."),
    lean_timeout: float = typer.Option(None, "--lean-timeout", min=0.001, help="Limit of one Lean check, seconds."),
    priority: int = typer.Option(0, min=-100, max=100, help="Higher is checked earlier."),
    rows: int = typer.Option(100, min=0, help="Print at most this many rows; the summary covers all."),
    as_json: bool = typer.Option(False, "--json", help="Print the responses as JSON lines, one a batch, and no table."),
) -> None:
    """Score a file of candidates and print the verdicts.

    Exit status: 0 all well; 1 some line carries `expected` and got another verdict or reason; 2 the file or the gateway
    cannot be used.
    """
    from rich.console import Console

    from services.runtime.settings import SettingsError, load_settings

    options: dict[str, Any] = {"priority": priority, "mode": mode and mode.value, "lean_timeout_s": lean_timeout}
    cutoff = {"policy": policy and policy.value, "deadline_s": deadline}
    options["cutoff"] = {name: value for name, value in cutoff.items() if value is not None}
    try:
        settings = load_settings().client
        given = _read(file)
        key = settings.key.get_secret_value() if settings.key else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        responses: list[ScoreResponse] = []
        with httpx.Client(
            base_url=url or settings.url, headers=headers, timeout=httpx.Timeout(30, read=None)
        ) as client:
            for start in range(0, len(given.candidates), MAX_CANDIDATES):
                batch = given.candidates[start : start + MAX_CANDIDATES]
                body = {"candidates": batch, **{k: v for k, v in options.items() if v is not None}}
                responses.append(_run_job(client, body, Console(stderr=True)))
    except (ScoreError, SettingsError) as error:
        typer.echo(f"lean-reward score: {error}", err=True)
        raise typer.Exit(2) from None
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("w", encoding="utf-8") as lines:
            for response in responses:
                lines.writelines(result.model_dump_json() + "\n" for result in response.results)
    results = [result for response in responses for result in response.results]
    surprises = [r for r in results if r.id in given.expected and not _as_expected(r, given.expected[r.id])]
    if as_json:
        for response in responses:
            typer.echo(response.model_dump_json())
    else:
        console = Console() if Console().is_terminal else Console(width=_WIDTH_WITHOUT_TERMINAL)
        _print(console, results, responses, given, surprises, rows)
    raise typer.Exit(1 if surprises else 0)


def _read(file: Path) -> _Input:
    given = _Input()
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _add_line(given, line, number, file)
    except (OSError, UnicodeDecodeError) as error:
        raise ScoreError(f"cannot read {file}: {error}") from None
    if not given.candidates:
        raise ScoreError(f"{file} holds no candidate")
    return given


def _add_line(given: _Input, line: str, number: int, file: Path) -> None:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("a candidate is a JSON object")
        expected = row.pop(_EXPECTED, None)
        for name in _IGNORED:
            row.pop(name, None)
        candidate = Candidate.model_validate({"id": f"line-{number}", **row})
    except (ValueError, RecursionError) as error:
        raise ScoreError(f"{file}, line {number}: {error}") from None
    given.candidates.append(candidate.model_dump(exclude_none=True))
    if isinstance(expected, dict):
        given.expected[candidate.id] = expected


def _run_job(client: httpx.Client, body: dict[str, Any], console: Console) -> ScoreResponse:
    """Post one batch as a job and follow it to its end; a connection that breaks is taken up again."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    job = Job.model_validate(_checked(_request(client, "POST", "/v1/proofs/jobs", json=body)))
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("decided"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("scoring", total=job.progress.candidates)
        give_up = time.monotonic() + _RETRY_S
        while job.state is JobState.RUNNING:
            try:
                for name, data in _events(client, f"/v1/proofs/jobs/{job.id}/events"):
                    give_up = time.monotonic() + _RETRY_S
                    if name == JobEventName.PROGRESS.value:
                        progress.update(bar, completed=JobProgress.model_validate_json(data).decided)
                    elif name == JobEventName.END.value:
                        job = Job.model_validate_json(data)
            except httpx.TransportError as error:
                if time.monotonic() > give_up:
                    raise ScoreError(f"the gateway at {client.base_url} is gone: {error}") from None
                time.sleep(0.5)
    if job.state is JobState.DONE and job.result is None:  # it was done before anybody could follow it
        job = Job.model_validate(_checked(_request(client, "GET", f"/v1/proofs/jobs/{job.id}")))
    if job.result is None:
        detail = job.problem.detail if job.problem else None
        raise ScoreError(f"job {job.id} ended as {job.state.value}" + (f": {detail}" if detail else ""))
    return job.result


def _events(client: httpx.Client, path: str) -> Iterator[tuple[str, str]]:
    """Yield (name, data) of each server-sent event until the stream ends."""
    with client.stream("GET", path) as answer:
        if answer.status_code != 200:
            answer.read()
            _checked(answer)
        name = "message"
        data: list[str] = []
        for line in answer.iter_lines():
            if not line:
                if data:
                    yield name, "\n".join(data)
                name, data = "message", []
            elif line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))


def _request(client: httpx.Client, method: str, path: str, **arguments: Any) -> httpx.Response:
    try:
        return client.request(method, path, **arguments)
    except httpx.TransportError as error:
        raise ScoreError(
            f"no gateway answers at {client.base_url} ({error}); start one with `lean-reward up`"
        ) from None


def _checked(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json()
    try:
        said = describe_problem(Problem.model_validate_json(answer.content))
    except ValueError:
        said = answer.text[:300]
    raise ScoreError(f"the gateway answered {answer.status_code} {said}")


def _as_expected(result: CandidateResult, expected: dict[str, Any]) -> bool:
    return all(getattr(result, name).value == wanted for name, wanted in expected.items() if hasattr(result, name))


def _print(
    console: Console,
    results: list[CandidateResult],
    responses: list[ScoreResponse],
    given: _Input,
    surprises: list[CandidateResult],
    rows: int,
) -> None:
    from rich.markup import escape

    wide = console.width >= _WIDTH_OF_DETAILS
    shown = results[:rows]
    if shown:
        console.print(_table(shown, surprises, console.width))
    if not wide:
        for result in shown:
            if result.detail:
                console.print(f"[bold]{escape(result.id)}[/]: {escape(_in_one_line(result))}", highlight=False)
    seconds = sum(response.stats.elapsed_s for response in responses)
    by_verdict = Counter(result.verdict.value for result in results)
    by_source = Counter(result.source.value for result in results)
    console.print(
        f"{len(results)} candidates in {seconds:.1f} s ({len(results) / max(seconds, 1e-9):.0f}/s): "
        + ", ".join(f"{count} {name}" for name, count in sorted(by_verdict.items()))
        + "; decided by "
        + ", ".join(f"{name} {count}" for name, count in sorted(by_source.items()))
    )
    if given.expected:
        console.print(
            f"{len(given.expected) - len(surprises)} of {len(given.expected)} as expected (! marks the others)"
        )


def _table(results: list[CandidateResult], surprises: list[CandidateResult], width: int) -> Table:
    """The verdicts in `width` columns: long ids are cut, everything else is whole from 80 on; details where there is
    room for them."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    wide = width >= _WIDTH_OF_DETAILS
    colour = {"valid": "green", "invalid": "red", "unknown": "yellow"}
    room = width - sum(_WIDTHS.values()) - 2 * len(_WIDTHS) - 3  # gaps and edges
    ids = max(9, min(max(len(result.id) for result in results), room if not wide else 40))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", width=ids)
    for name, columns in _WIDTHS.items():
        table.add_column(name, no_wrap=True, width=columns)
    if wide:
        table.add_column("what Lean or the policy said", no_wrap=True, overflow="ellipsis", width=room - ids - 2)
    for result in results:
        verdict = result.verdict.value
        surprise = " [bold red]![/]" if result in surprises else ""
        cells = [
            escape(result.id),
            f"[{colour[verdict]}]{verdict}[/]{surprise}",
            "-" if result.reward is None else f"{result.reward:g}",
            result.source.value,
            result.reason.value,
            "" if result.lean.elapsed_s is None else f"{result.lean.elapsed_s * 1000:.0f} ms",
        ]
        table.add_row(*cells, *([escape(_in_one_line(result))] if wide else []))
    return table


def _in_one_line(result: CandidateResult) -> str:
    text = " ".join((result.detail or "").split())
    return text if len(text) <= _LONGEST_DETAIL else f"{text[: _LONGEST_DETAIL - 1]}…"
