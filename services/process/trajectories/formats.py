"""Which reader reads a record: the one that is named, or the one whose shape it has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from services.process.trajectories import (
    atif,
    chat,
    claude_code,
    mini_swe_agent,
    openhands,
    openhands_sdk,
    steps,
    swe_agent,
)
from services.process.trajectories.model import Step, TrajectoryError
from services.process.trajectories.record import kind


class Reader(NamedTuple):
    """``fits(record)`` tells a format by its shape; ``read(record)`` gives the steps or raises ``TrajectoryError``."""

    fits: Callable[[Any], bool]
    read: Callable[[Any], list[Step]]


# In the order in which shapes are tried: the most telling first.
FORMATS: dict[str, Reader] = {
    "atif": Reader(atif.fits, atif.read),
    "mini_swe_agent": Reader(mini_swe_agent.fits, mini_swe_agent.read),
    "swe_agent": Reader(swe_agent.fits, swe_agent.read),
    "openhands_sdk": Reader(openhands_sdk.fits, openhands_sdk.read),
    "openhands": Reader(openhands.fits, openhands.read),
    "claude_code": Reader(claude_code.fits, claude_code.read),
    "steps": Reader(steps.fits, steps.read),
    "chat": Reader(chat.fits, chat.read),
}


def detect(record: Any) -> str:
    """The format of a decoded record. Raises ``TrajectoryError`` when none fits."""
    for name, reader in FORMATS.items():
        if reader.fits(record):
            return name
    raise TrajectoryError("", f"no known format has this shape ({kind(record)}); name one of {', '.join(FORMATS)}")


def read_trajectory(record: Any, name: str | None = None) -> list[Step]:
    """The steps of a record: decoded JSON, JSON text, or NDJSON text.

    ``name`` is one of ``FORMATS``, None to detect it. Raises ``TrajectoryError`` with the place of what does not fit.
    """
    if isinstance(record, str):
        record = decode(record)
    if name is not None and name not in FORMATS:
        raise TrajectoryError("", f"unknown format {name!r}; one of {', '.join(FORMATS)}")
    return FORMATS[name or detect(record)].read(record)


def decode(text: str) -> Any:
    """JSON, or NDJSON as the list of its lines' values (lines that are no JSON are a harness's own chatter)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    values = []
    for line in text.splitlines():
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    if not any(isinstance(value, dict) for value in values):
        raise TrajectoryError("", "neither JSON nor lines of JSON objects")
    return [value for value in values if isinstance(value, dict)]
