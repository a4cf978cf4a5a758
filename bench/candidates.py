"""Candidates for the benches: a JSON-lines file, repeated to any number, each repetition a different program."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from services.contracts.lean import CheckTask
from services.contracts.outcomes import Profile
from services.proofs.precheck import precheck
from services.proofs.statement import read_statement


@dataclass(frozen=True, slots=True)
class Candidate:
    """One program; `expected` is the reason that the file names, where it names one."""

    id: str
    code: str
    statement: str | None
    header: str
    expected: str | None


def read_candidates(
    path: Path, count: int | None, leave_out: Collection[str] = (), without_groups: Collection[str] = ()
) -> list[Candidate]:
    """The file's candidates without those whose expected reason or group is left out, repeated up to `count`.

    A repetition ends in a comment of its own, so that neither a queue nor a cache can join it with another.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    base = [
        Candidate(
            str(row["id"]),
            row["code"],
            row.get("statement"),
            row.get("header", ""),
            row.get("expected", {}).get("reason"),
        )
        for row in rows
        if "code" in row
        and row.get("expected", {}).get("reason") not in leave_out
        and row.get("group") not in without_groups
    ]
    chosen = []
    for number in range(len(base) if count is None else count):
        turn, candidate = number // len(base), base[number % len(base)]
        code = candidate.code if turn == 0 else f"{candidate.code}\n-- {turn}"
        chosen.append(
            Candidate(f"{candidate.id}.{turn}", code, candidate.statement, candidate.header, candidate.expected)
        )
    return chosen


def lean_task(candidate: Candidate, timeout_s: float) -> CheckTask | None:
    """What Lean is asked, as the gateway would ask; None when the precheck decides."""
    if precheck(candidate.code, candidate.header, Profile.STRICT) is not None:
        return None
    statement = None if candidate.statement is None else read_statement(candidate.statement).text
    return CheckTask(code=candidate.code, header=candidate.header, statement=statement, timeout_s=timeout_s)
