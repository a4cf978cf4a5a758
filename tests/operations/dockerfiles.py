"""Dockerfiles as data: enough of their syntax to hold what they copy, set and start against the repository."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*/Dockerfile"))


@dataclass(frozen=True)
class Instruction:
    """`stage`: the number of the build stage that it belongs to."""

    name: str
    text: str
    stage: int


def instructions(path: Path) -> list[Instruction]:
    """The instructions of a Dockerfile in order, continued lines joined, comments left out."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, text = line.strip().partition(" ")
            stage += name == "FROM"
            found.append(Instruction(name, text.strip(), stage))
    return found


def environment(path: Path) -> dict[str, str]:
    """What the last stage sets with ENV."""
    last = instructions(path)[-1].stage
    pairs = [word for i in instructions(path) if i.name == "ENV" and i.stage == last for word in shlex.split(i.text)]
    return dict(pair.split("=", 1) for pair in pairs)


def copied(path: Path) -> list[str]:
    """The sources that are copied from the build context."""
    texts = [i.text for i in instructions(path) if i.name == "COPY" and "--from=" not in i.text]
    return [source for text in texts for source in shlex.split(text)[:-1] if not source.startswith("--")]
