"""Machine code is made once, found by later processes, and never believed when it is damaged."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path

import pytest

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.machine_code import ensure_machine_code, is_whole, specimens
from lean_worker.engines.embedded.process import HostProcess
from lean_worker.engines.embedded.snapshots import ensure_snapshot
from tests.faults.lean_home import flip, share_library

pytestmark = [pytest.mark.lean, pytest.mark.slow]

MEMORY_MB = 1024
REQUEST = {"header": "", "heartbeats": 200_000, "softMs": 20_000, "hardMs": 30_000, "printed": False, "tactics": False}


@pytest.fixture
async def fresh(installation: Installation, tmp_path: Path) -> Installation:
    """The installed Lean without snapshots, and with a copy of its machine code."""
    for path in (installation.wasm, installation.js, installation.manifest):
        (tmp_path / path.name).symlink_to(path)
    fresh = Installation(tmp_path)
    fresh.snapshots.mkdir()
    fresh.machine_codes.mkdir()
    shutil.copyfile(await ensure_machine_code(installation), fresh.machine_code)
    return fresh


async def started_warm(installation: Installation) -> bool:
    host = await HostProcess.start(installation, MEMORY_MB)
    await host.kill()
    return host.warm


async def test_a_process_starts_with_it(fresh: Installation) -> None:
    assert await started_warm(fresh)
    assert fresh.machine_code.is_file()


async def test_a_process_starts_without_it(fresh: Installation) -> None:
    fresh.machine_code.unlink()
    assert not await started_warm(fresh)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "foreign"])
async def test_a_damaged_file_is_refused_and_removed(fresh: Installation, damage: str) -> None:
    path = fresh.machine_code
    whole = path.read_bytes()
    if damage == "flipped":
        flip(path, 0.6)
    else:
        path.write_bytes({"truncated": whole[: len(whole) // 2], "empty": b"", "foreign": b"something else"}[damage])
    assert not await started_warm(fresh)
    assert not path.exists()


async def test_a_file_over_which_v8_itself_ends_is_refused_and_removed(fresh: Installation) -> None:
    path = fresh.machine_code
    body = path.read_bytes()[12:]
    half = body[: len(body) // 2]
    path.write_bytes(b"LEANCOD1" + zlib.crc32(half).to_bytes(4, "little") + half)
    assert is_whole(path)
    assert not await started_warm(fresh)
    assert not path.exists()


async def test_what_is_no_file_is_left_alone(fresh: Installation) -> None:
    path = fresh.machine_code
    path.unlink()
    os.mkfifo(path)
    assert not is_whole(path)
    assert not await started_warm(fresh)
    assert path.exists()


async def test_a_damaged_file_is_made_again_and_leftovers_go(fresh: Installation, installation: Installation) -> None:
    share_library(installation, fresh)
    path = fresh.machine_code
    flip(path, 0.5)
    leftover = path.parent / f"{path.name}.1.tmp"
    leftover.write_bytes(b"half")
    snapshot_in(fresh, await ensure_snapshot(installation, ("Init",)))
    assert is_whole(await ensure_machine_code(fresh))
    assert await started_warm(fresh)
    assert not leftover.exists()


async def test_answers_are_the_same_with_and_without_it(installation: Installation, fresh: Installation) -> None:
    snapshot = await ensure_snapshot(installation, ("Init",))
    answers = []
    for warm in (True, False):
        if not warm:
            fresh.machine_code.unlink()
        host = await HostProcess.start(fresh, MEMORY_MB)
        try:
            assert host.warm is warm
            await host.load(snapshot_in(fresh, snapshot), ("Init",))
            answers.append([await answer(host, specimen.code, specimen.statement) for specimen in specimens()])
        finally:
            await host.kill()
    assert answers[0] == answers[1]
    assert sum(target is not None and target["kernelAccepts"] is True for target, _ in answers[0]) > 20


def snapshot_in(installation: Installation, snapshot: Path) -> Path:
    copy = installation.snapshots / snapshot.name
    if not copy.exists():
        shutil.copyfile(snapshot, copy)
    return copy


async def answer(host: HostProcess, code: str, statement: str | None) -> tuple[object, object]:
    reply = await host.check({**REQUEST, "code": code, "statement": statement})
    assert reply["status"] == "done"
    return reply.get("target"), reply.get("messages", reply.get("statementError"))


async def test_only_a_process_in_training_may_write(fresh: Installation) -> None:
    path = fresh.machine_code.with_suffix(".other")
    host = await HostProcess.start(fresh, MEMORY_MB)
    try:
        reply = await host.save(path)
        assert reply["status"] == "unsaved"
        assert not path.exists()
    finally:
        await host.kill()


async def test_a_folder_that_cannot_be_written_is_a_precise_error(fresh: Installation) -> None:
    shutil.rmtree(fresh.machine_codes)
    fresh.machine_codes.write_text("no folder")
    with pytest.raises(EngineUnavailable, match="cannot write to"):
        await ensure_machine_code(fresh)


def test_every_program_in_training_has_a_theorem() -> None:
    found = list(specimens())
    assert len(found) > 40
    assert all("theorem" in specimen.code for specimen in found)
