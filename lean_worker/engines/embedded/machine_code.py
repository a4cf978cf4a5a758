"""The machine code that V8 makes of Lean, made once and found by every later process.

V8 compiles a function when it is first called, and for speed when it has run often: the first hundred checks of a
process cost up to twice the time of the later ones, and half a core beside. Code that was trained on programs of our
own spares a process that. It holds for one release of Node.js on one kind of processor; a process that finds none, or
none that V8 accepts, compiles as it goes, and answers the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.process import HostDied, HostProcess
from lean_worker.engines.embedded.snapshots import discard_snapshot, ensure_snapshot, locked
from services.runtime.within import within

_PROGRAMS = Path(__file__).with_name("training.lean")
_ROUNDS = 5  # more compile a little more of what is rare
_KEPT = 4  # files in the folder: 15 to 20 MB each; machines of several kinds may share it
_MEMORY_MB = 1024
_LIMIT_MS = 20_000
_PATIENCE_S = 300.0
_MAGIC = b"LEANCOD1"
_HEAD = len(_MAGIC) + 4


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
    if is_whole(path):
        return path
    async with locked(path):
        if not is_whole(path):
            _drop_leftovers(path)
            host = await HostProcess.start(installation, _MEMORY_MB, writable=path.parent)
            try:
                async with within(_PATIENCE_S):
                    await _load(host, installation)
                    await _train(host, advance)
                    reply = await host.save(path)
            except HostDied as error:
                raise EngineUnavailable(f"the Lean host died in training: {error}") from error
            except asyncio.TimeoutError:
                raise EngineUnavailable(f"the Lean host was not trained within {_PATIENCE_S:.0f} s") from None
            finally:
                await host.kill()
            if reply["status"] != "saved":
                raise EngineUnavailable(f"the machine code cannot be kept: {reply['detail']}")
            _drop_oldest(path)
    return path


def is_whole(path: Path) -> bool:
    """Whether it is there and undamaged, as `host/machine_code.js` looks at it."""
    if not path.is_file():  # reading a pipe would wait for its writer
        return False
    try:
        data = path.read_bytes()
    except OSError:
        return False
    head, body = data[:_HEAD], data[_HEAD:]
    return bool(body) and head == _MAGIC + zlib.crc32(body).to_bytes(4, "little")


def specimens() -> Iterator[Specimen]:
    for part in re.split(r"^----", _PROGRAMS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        statement, code = part.split("\n", 1)
        yield Specimen(statement.strip() or None, code)


async def _load(host: HostProcess, installation: Installation) -> None:
    for _ in range(2):
        snapshot = await ensure_snapshot(installation, ("Init",))
        if (await host.load(snapshot, ("Init",)))["status"] == "loaded":
            return
        await discard_snapshot(snapshot)
    raise EngineUnavailable("the snapshot of Init is damaged")


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


def _drop_leftovers(path: Path) -> None:
    """Of trainings that were killed; the caller holds the lock."""
    for leftover in path.parent.glob(f"{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def _drop_oldest(newest: Path) -> None:
    """Keep the folder bounded, as far as it is ours."""
    with contextlib.suppress(OSError):
        others = [path for path in newest.parent.glob(f"*{newest.suffix}") if path != newest]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT - 1 :]:
            path.unlink(missing_ok=True)
