"""Lays the null Lean out as a built Lean REPL and a `lake`, the way servers look for them.

    python -m bench.null_lean.folder FOLDER --delay 0.03

Ours then runs on it with LEAN_REWARD_WORKER_ENGINE=repl, LEAN_REWARD_REPL_FOLDER=FOLDER and
LEAN_REWARD_REPL_LAKE=FOLDER/lake; a peer with its own settings for the folder of the REPL and of the project.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

_REPL = Path(__file__).with_name("repl.py")
# `lake env` prints the environment; `lake env PROGRAM ...` runs it there.
_LAKE = """#!/bin/sh
if [ "$1" = env ] && [ $# -gt 1 ]; then shift; exec "$@"; fi
echo LEAN_PATH=
"""


def lay_out(folder: Path, delay_s: float = 0.0) -> Path:
    """Make `folder` the null Lean with this delay for each command, seconds. Returns its `lake`."""
    build = folder / ".lake" / "build" / "bin"
    build.mkdir(parents=True, exist_ok=True)
    # Through a shell: a path with a space cannot stand behind `#!`.
    _executable(build / "repl", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -SE "$0.py"\n')
    (build / "repl.py").write_text(_REPL.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "delay").write_text(f"{delay_s:g}")
    (folder / "lean-toolchain").write_text("leanprover/lean4:v0.0.0-null\n")
    _executable(folder / "lake", _LAKE)
    return folder / "lake"


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that each command takes")
    options = parser.parse_args()
    print(lay_out(options.folder, options.delay))


if __name__ == "__main__":
    main()
