"""Snapshots are shared, atomic, checked, and built again when damaged."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from lean_worker.engines.base import EngineUnavailable, HeaderError
from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.snapshots import ensure_snapshot, require_modules, snapshot_path
from services.contracts.lean import CheckTask
from tests.faults.lean_home import flip, parted, share_library

pytestmark = [pytest.mark.lean, pytest.mark.slow]

HONEST = "theorem t (a b : Nat) : a + b = b + a := by omega"
INIT = ("Init",)


@pytest.fixture
def fresh(installation: Installation, tmp_path: Path) -> Installation:
    """The installed Lean with an empty folder of snapshots."""
    for path in (installation.wasm, installation.js, installation.manifest):
        (tmp_path / path.name).symlink_to(path)
    fresh = Installation(tmp_path)
    share_library(installation, fresh)
    return fresh


@pytest.fixture
async def snapshot(fresh: Installation, installation: Installation) -> Path:
    """That of `Init`, which `fresh` has already."""
    path = snapshot_path(fresh, INIT)
    path.parent.mkdir()
    shutil.copyfile(await ensure_snapshot(installation, INIT), path)
    return path


def size(path: Path) -> int:
    return path.stat().st_size


def inode(path: Path) -> int:
    return path.stat().st_ino


def do_damage(path: Path, damage: str) -> None:
    if damage in ("truncated", "empty"):
        os.truncate(path, size(path) // 2 if damage == "truncated" else 0)
    else:
        flip(path, 0.9 if damage == "flipped" else 40 / size(path))


@pytest.mark.parametrize("damage", ["changed", "added", "missing"])
async def test_nothing_is_built_from_another_library(fresh: Installation, damage: str) -> None:
    module = fresh.library / "Init" / "Prelude.olean"
    if damage == "changed":
        flip(parted(module), 0.5)
    elif damage == "added":
        (fresh.library / "Init" / "Extra.olean").write_bytes(b"")
    else:
        module.unlink()
    with pytest.raises(EngineUnavailable, match="lean install --force"):
        await ensure_snapshot(fresh, INIT)
    assert not list(fresh.snapshots.glob("*.img"))


async def test_two_engines_at_once_build_one_snapshot_and_check_alike(fresh: Installation) -> None:
    engines = [EmbeddedEngine(fresh), EmbeddedEngine(fresh)]
    try:
        await asyncio.gather(*(engine.start() for engine in engines))
        answers = await asyncio.gather(*(engine.check(CheckTask(code=HONEST)) for engine in engines))
        assert all(answer.theorems[0].kernel_accepts for answer in answers)
        assert [path.suffix for path in sorted(fresh.snapshots.iterdir())] == [".img", ".lock"]
    finally:
        await asyncio.gather(*(engine.stop() for engine in engines))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "description"])
async def test_a_damaged_snapshot_is_built_again(fresh: Installation, snapshot: Path, damage: str) -> None:
    whole = size(snapshot)
    do_damage(snapshot, damage)
    engine = EmbeddedEngine(fresh)
    try:
        await engine.start()
        assert size(snapshot) == whole
        assert (await engine.check(CheckTask(code=HONEST))).theorems[0].kernel_accepts
    finally:
        await engine.stop()


async def test_damage_is_seen_though_the_same_process_has_loaded_the_file_before(
    fresh: Installation, snapshot: Path
) -> None:
    """A file that was found whole is trusted for only as long as nobody writes to it."""
    engine = EmbeddedEngine(fresh)
    other = CheckTask(code=f"import Init.Data.Nat\n{HONEST}")
    try:
        await engine.start()
        for damaged in (False, True):
            assert (await engine.check(other)).theorems[0].kernel_accepts
            file_before = inode(snapshot)
            if damaged:
                do_damage(snapshot, "flipped")
            assert (await engine.check(CheckTask(code=HONEST))).theorems[0].kernel_accepts
            assert (inode(snapshot) != file_before) is damaged
    finally:
        await engine.stop()


async def test_leftovers_of_a_killed_builder_are_removed(fresh: Installation) -> None:
    path = snapshot_path(fresh, INIT)
    path.parent.mkdir()
    leftover = path.parent / f"{path.name}.1.tmp"
    leftover.write_bytes(b"half")
    assert await ensure_snapshot(fresh, INIT) == path
    assert not leftover.exists()


def test_the_name_covers_the_imports_and_their_order(installation: Installation) -> None:
    names = {snapshot_path(installation, imports) for imports in (INIT, ("Init", "Std"), ("Init", "Std", "Lean"))}
    names.add(snapshot_path(installation, ("Init", "Lean", "Std")))
    assert len(names) == 4


@pytest.mark.parametrize("module", ["../../etc/passwd", "Init/Prelude", "", "Init..Prelude", "init", "Lean\0"])
def test_only_modules_of_the_package_can_be_imported(installation: Installation, module: str) -> None:
    with pytest.raises(HeaderError, match="unknown import"):
        require_modules(installation, ("Init", module))
