"""What `lean-reward lean doctor` prints."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lean_worker.engines.base import Engine
from lean_worker.engines.embedded.doctor import Finding, examine
from lean_worker.engines.embedded.layout import Installation


def run(installation: Installation, make_engine: Callable[[], Engine], as_json: bool) -> int:
    """Examine and print; returns 0 when all is well, else 1."""
    console = Console(quiet=as_json)
    findings: list[Finding] = []
    with console.status("looking at the embedded Lean"):
        findings.extend(examine(installation, make_engine))
    well = all(finding.ok for finding in findings)
    if as_json:
        print(json.dumps({"ok": well, "findings": [dataclasses.asdict(finding) for finding in findings]}))
        return 0 if well else 1
    table = Table("", "what", "found", "seconds", title="The embedded Lean")
    for finding in findings:
        mark = "[green]ok[/]" if finding.ok else "[red]broken[/]"
        seconds = "" if finding.seconds is None else f"{finding.seconds:.2f}"
        table.add_row(mark, escape(finding.what), escape(finding.detail), seconds)
    console.print(table)
    return 0 if well else 1
