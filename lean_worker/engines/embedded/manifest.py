"""What an installation of the embedded Lean holds, and whether it is whole: the manifest and its comparison."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lean_worker.engines.embedded import patch
from lean_worker.engines.embedded.layout import Installation


@dataclass(frozen=True, slots=True)
class Package:
    """What is fetched and how its files are made ready."""

    name: str
    version: str
    integrity: str
    library: str
    """The archive of compiled modules inside the tarball."""
    programs: Mapping[str, tuple[str, Callable[[bytes], bytes]]]
    """Entry of the tarball -> name in the installation, and the function that verifies and patches it."""

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}"


LEAN = Package(
    name=patch.PACKAGE,
    version=patch.VERSION,
    integrity=patch.INTEGRITY,
    library="package/lean-lib.tar.gz",
    programs={
        "package/lean.js": ("lean.js", patch.trim_js),
        "package/lean.wasm": ("lean.wasm", patch.patch_wasm),
    },
)


class FileRecord(BaseModel):
    """Size in bytes and SHA-256 of one file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    sha256: str


class LibraryRecord(BaseModel):
    """Number, total size and digest of the compiled modules (`library_record`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: int
    bytes: int
    sha256: str


class Manifest(BaseModel):
    """What was installed; written last."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    version: str
    integrity: str
    files: dict[str, FileRecord]
    library: LibraryRecord


def read_manifest(path: Path) -> Manifest | None:
    """The manifest, or None when it is absent or unreadable."""
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def file_record(path: Path, advance: Callable[[int], None] = lambda _: None) -> FileRecord:
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return FileRecord(bytes=size, sha256=digest.hexdigest())


def library_record(folder: Path, advance: Callable[[int], None] = lambda _: None) -> LibraryRecord:
    """Digest of a folder: SHA-256 over the lines `<sha256> <relative path>`, sorted by path."""
    digest, total = hashlib.sha256(), 0
    paths = sorted(_walk(folder))
    for relative in paths:
        record = file_record(folder / relative, advance)
        digest.update(f"{record.sha256} {relative}\n".encode())
        total += record.bytes
    return LibraryRecord(files=len(paths), bytes=total, sha256=digest.hexdigest())


def quick_faults(installation: Installation, package: Package) -> list[str]:
    """What is wrong with an installation as far as sizes tell; empty when it looks whole. Takes some milliseconds."""
    manifest = read_manifest(installation.manifest)
    if manifest is None:
        return ["nothing is installed" if not installation.manifest.exists() else "the manifest is unreadable"]
    if (manifest.package, manifest.version, manifest.integrity) != (package.name, package.version, package.integrity):
        return [f"{manifest.package}@{manifest.version} is installed, {package.spec} is wanted"]
    faults = [f"no record of {name}" for name, _ in package.programs.values() if name not in manifest.files]
    for name, record in manifest.files.items():
        path = installation.root / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif path.stat().st_size != record.bytes:
            faults.append(f"{name} has {path.stat().st_size} bytes, expected {record.bytes}")
    sizes = [(installation.library / relative).stat().st_size for relative in _walk(installation.library)]
    if (len(sizes), sum(sizes)) != (manifest.library.files, manifest.library.bytes):
        faults.append(
            f"the library has {len(sizes)} files of {sum(sizes)} bytes, "
            f"expected {manifest.library.files} of {manifest.library.bytes}"
        )
    return faults


def deep_faults(installation: Installation, advance: Callable[[int], None] = lambda _: None) -> list[str]:
    """What is wrong with an installation when every byte is read (245 MB of modules); empty when it is whole."""
    manifest = read_manifest(installation.manifest)
    if manifest is None:
        return ["the manifest is absent or unreadable"]
    faults = []
    for name, record in manifest.files.items():
        path = installation.root / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif file_record(path, advance) != record:
            faults.append(f"{name} has been changed since it was installed")
    if library_record(installation.library, advance) != manifest.library:
        faults.append("the library has been changed since it was installed")
    return faults


def _walk(folder: Path) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(base, name), folder)
