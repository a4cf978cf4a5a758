"""Each command of docs/evaluation.md, run as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from reward_gateway.studies.files import write_rows
from reward_gateway.studies.schema import COLUMNS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "evaluation.md"


def test_the_documented_commands_run_one_after_the_other(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    for name, numbers in (("labels", range(8)), ("validation", range(8, 16))):
        with (tmp_path / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in numbers:
                code = f"theorem t : {number} = {number} := by\n  " + ("rfl" if number % 2 else "nope")
                verdict = "valid" if number % 2 else "invalid"
                file.write(json.dumps({"id": f"c{number}", "code": code, "verdict": verdict, "toolchain": "x"}) + "\n")
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    _recording(tmp_path / "recordings")
    for command in block.splitlines():
        ended = subprocess.run(
            command.replace("lean-reward", f'"{sys.executable}" -m services.runtime.cli'),
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stdout[-1000:] + ended.stderr[-1000:]
    assert (tmp_path / "curves.svg").is_file()
    assert json.loads((tmp_path / "evaluation.json").read_text())["programs"] == 8
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Verdict prediction" in report
    assert "Drift by step: recordings" in report
    assert "<table>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def _recording(folder: Path) -> None:
    """One candidate that Lean and an evaluator have judged."""
    blank = {"text": "", "word": "", "count": 0, "number": 0.0, "flag": False, "time": datetime.now(timezone.utc)}
    row = {column.name: blank[column.kind] for column in COLUMNS if not column.optional}
    folder.mkdir()
    told = {"mode": "hybrid", "lean_status": "ok", "lean_verdict": "valid", "predicted": "valid"}
    write_rows(folder / "one.parquet", [{**row, **told}])
