"""Each command that the README documents, run as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
COMMANDS = [
    line.removeprefix(".venv/bin/lean-reward ")
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith(".venv/bin/lean-reward ")
]

pytestmark = [pytest.mark.lean, pytest.mark.slow]


def _run(arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.runtime.cli", *arguments.split()],
        cwd=ROOT,
        env={**os.environ, "LEAN_REWARD_CLIENT_URL": url},
        capture_output=True,
        text=True,
        timeout=180,
    )


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith("up")])
def test_a_documented_command_succeeds(platform: Any, command: str) -> None:
    ended = _run(command, platform.url)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]


def test_the_documented_request_is_answered_as_the_text_says(platform: Any) -> None:
    (request,) = (block for block in BLOCKS if block.startswith("curl"))
    body = re.search(r"-d '(.*)'\s*$", request, re.DOTALL)
    assert body is not None
    with platform.client() as client:
        answer = client.post("/v1/proofs/score", json=json.loads(body.group(1))).json()
    reasons = {result["id"]: (result["verdict"], result["reason"]) for result in answer["results"]}
    assert reasons == {
        "right": ("valid", "ok"),
        "wrong": ("invalid", "compile_error"),
        "cheat": ("invalid", "placeholder"),
    }
