"""A folder with a scripted REPL and a scripted `lake`, laid out as a built REPL is."""

import shutil
import stat
import sys
from pathlib import Path

import pytest

from lean_worker.engines.repl.engine import ReplEngine
from services.runtime.settings import ReplSettings

SCRIPT = Path(__file__).with_name("scripted_repl.py")


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


@pytest.fixture
def repl_folder(tmp_path):
    folder = tmp_path / "repl folder"
    shutil.copy(SCRIPT, folder.parent / "script.py")
    executable(folder / ".lake/build/bin/repl", f"#!{Path(sys.executable).resolve()}\n" + SCRIPT.read_text())
    executable(folder / "lake", "#!/bin/sh\necho LEAN_PATH=/nowhere\necho SECRET=redis-password\n")
    (folder / "lean-toolchain").write_text("leanprover/lean4:v4.20.0\n")
    return folder


@pytest.fixture
def settings(repl_folder):
    def make(**changes):
        defaults = {
            "folder": repl_folder,
            "lake": str(repl_folder / "lake"),
            "sandbox": "off",
            "memory_mb": 1024,
            "start_timeout_s": 20,
            "read_only": (Path(sys.base_prefix),),
        }
        return ReplSettings(**{**defaults, **changes})

    return make


@pytest.fixture
async def scripted(settings):
    """Start engines over the scripted REPL; all are stopped afterwards."""
    engines = []

    async def start(**changes):
        engine = ReplEngine(settings(**changes))
        engines.append(engine)
        await engine.start()
        return engine

    yield start
    for engine in engines:
        await engine.stop()
