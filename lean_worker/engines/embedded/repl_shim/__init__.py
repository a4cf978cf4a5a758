"""The embedded Lean as a Lean REPL: a folder that looks like a built REPL to LeanInteract and to the native engine.

What it is for: trying the native engine, and anything else that drives a Lean REPL, against a real Lean on a machine
that has no toolchain. `lay_out` writes `lake` (whose `lake env` prints the environment or runs a command in it),
`.lake/build/bin/repl` and `lean-toolchain`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lean_worker.engines.embedded.identity import HOST, LEAN_VERSION
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.snapshots import ensure_snapshot

_SCRIPTS = Path(__file__).parent
_MEMORY_MB = 2048


@dataclass(frozen=True, slots=True)
class ReplFolder:
    """Where the parts are. `read_only`: what the REPL reads outside of its folder."""

    folder: Path
    lake: Path
    read_only: tuple[Path, ...]


async def lay_out(
    folder: Path, installation: Installation, environments: Sequence[str] = ("Init",), memory_mb: int = _MEMORY_MB
) -> ReplFolder:
    """Write the folder, building the snapshots of `environments` (modules that may be imported) where they are missing.

    Raises:
        EngineUnavailable: the embedded Lean is not installed, or a snapshot cannot be built.
        HeaderError: an environment's module is unknown.
    """
    installation.require()
    sets = [("Init",) if name == "Init" else ("Init", name) for name in dict.fromkeys(["Init", *environments])]
    config = {
        "js": str(installation.js),
        "wasm": str(installation.wasm),
        "memoryMb": memory_mb,
        "modules": sorted({module for imports in sets for module in imports}),
        "snapshots": {" ".join(imports): str(await ensure_snapshot(installation, imports)) for imports in sets},
    }
    _write(folder, installation, config)
    read_only = (node_executable().parents[1], HOST, _SCRIPTS, installation.root)
    return ReplFolder(folder, folder / "lake", read_only)


def _write(folder: Path, installation: Installation, config: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "repl.json"
    settings.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (folder / "lean-toolchain").write_text(f"leanprover/lean4:v{LEAN_VERSION.removesuffix('-pre')}\n", encoding="utf-8")
    # Node.js would read the system's OpenSSL settings, which a sandbox need not show it.
    words = (node_executable(), "--openssl-config=/dev/null", _SCRIPTS / "repl.js", settings)
    command = " ".join(shlex.quote(str(word)) for word in words)
    _write_program(folder / ".lake" / "build" / "bin" / "repl", f"exec {command}\n")
    variables = {"LEAN_PATH": installation.library, "LEAN_SYSROOT": installation.root}
    exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())
    _write_program(
        folder / "lake",
        f'{exports}case "$1" in\n'
        "  --version) echo 'Lake version of the embedded Lean' ;;\n"
        '  env) shift; if [ "$#" -eq 0 ]; then exec env; else exec "$@"; fi ;;\n'
        "  *) echo \"this lake only knows 'env' and '--version'\" >&2; exit 1 ;;\n"
        "esac\n",
    )


def _write_program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + body, encoding="utf-8")
    path.chmod(0o755)
