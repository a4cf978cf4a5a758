"""What a result of the embedded engine depends on besides its task."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from lean_worker.engines.embedded import patch
from services.contracts.lean import EngineIdentity

HOST = Path(__file__).parent / "host"

#: Lean's own version and commit, as the pinned package reports them; compared with the snapshot when one is loaded.
LEAN_VERSION = "4.28.0-pre"
LEAN_COMMIT = "38f3c0c45b8df6da2652faff6dcaa15afb5a6981"


@cache
def environment_hash() -> str:
    """Hash of the package, its patches and the host's sources: 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in (patch.INTEGRITY, patch.PATCHED_SHA256, patch.TRIMMED_JS_SHA256):
        digest.update(part.encode() + b"\0")
    for source in sorted(HOST.glob("*.js")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def engine_identity() -> EngineIdentity:
    return EngineIdentity(engine="embedded", toolchain=f"{LEAN_VERSION}+{LEAN_COMMIT}", environment=environment_hash())
