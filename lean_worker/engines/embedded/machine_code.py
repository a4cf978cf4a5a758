"""The machine code that V8 makes of Lean, made once and found by every later process.

V8 compiles a function when it is first called, and for speed when it has run often: the first hundred checks of a
process cost up to twice the time of the later ones, and half a core beside. Code that was trained on programs of our
own spares a process that. It holds for one release of Node.js on one kind of processor; a process that finds none, or
none that V8 accepts, compiles as it goes, and answers the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.process import HostDied, HostProcess
from lean_worker.engines.embedded.snapshots import ensure_snapshot, locked

_PROGRAMS = Path(__file__).with_name("training.lean")
_ROUNDS = 5  # more compile a little more of what is rare
_KEPT = 4  # files in the folder: 15 to 20 MB each; machines of several kinds may share it
_MEMORY_MB = 1024
_LIMIT_MS = 20_000


@dataclass(frozen=True, slots=True)
class Specimen:
    """A program to train on, and the statement that it is checked against."""

    statement: str | None
    code: str


async def ensure_machine_code(installation: Installation, advance: Callable[[], None] = lambda: None) -> Path:
    """The machine code for this processor, made first where it is missing (a quarter of a minute).

    `advance` is called now and then meanwhile. Raises `EngineUnavailable` when it cannot be made.
    """
    path = installation.machine_code
    if path.is_file():
        return path
    async with locked(path):
        if not path.is_file():
            snapshot = await ensure_snapshot(installation, ("Init",))
            host = await HostProcess.start(installation, _MEMORY_MB, writable=path.parent)
            try:
                await host.load(snapshot, ("Init",))
                await _train(host, advance)
                reply = await host.save(path)
            except HostDied as error:
                raise EngineUnavailable(f"the Lean host died in training: {error}") from error
            finally:
                await host.kill()
            if reply["status"] != "saved":
                raise EngineUnavailable(f"the machine code cannot be kept: {reply['detail']}")
            _drop_oldest(path)
    return path


def specimens() -> Iterator[Specimen]:
    for part in re.split(r"^----", _PROGRAMS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        statement, code = part.split("\n", 1)
        yield Specimen(statement.strip() or None, code)


async def _train(host: HostProcess, advance: Callable[[], None]) -> None:
    for number, specimen in enumerate(list(specimens()) * _ROUNDS):
        advance()
        await host.check(
            {
                "code": specimen.code,
                "header": "",
                "statement": specimen.statement,
                "heartbeats": 200_000,
                "softMs": _LIMIT_MS,
                "hardMs": 2 * _LIMIT_MS,
                "printed": number % 5 == 0,
                "tactics": number % 7 == 0,
            }
        )


def _drop_oldest(newest: Path) -> None:
    files = sorted(newest.parent.glob(f"*{newest.suffix}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[_KEPT:]:
        path.unlink(missing_ok=True)
