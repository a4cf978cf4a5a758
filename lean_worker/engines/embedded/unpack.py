"""Unpacking of an archive that came over the network: nothing is written outside the target folder.

Only plain files and folders with relative paths are taken; a link, a device, an absolute path, a `..`, a duplicate or
too many bytes end the unpacking. The `._*` entries that macOS adds are skipped.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import IO

_CHUNK = 1 << 20


class UnsafeArchive(Exception):
    """The archive is damaged, or holds an entry that an honest package would not hold."""


def member_path(name: str) -> PurePosixPath | None:
    """The relative path of an entry, or None for one to skip (the root itself, macOS's `._*`).

    Raises:
        UnsafeArchive: the path is absolute, climbs with `..`, or holds a NUL or a backslash.
    """
    if "\0" in name or "\\" in name:
        raise UnsafeArchive(f"an entry has a strange name: {name!r}")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise UnsafeArchive(f"an entry points outside the archive: {name!r}")
    if not path.parts or any(part.startswith("._") for part in path.parts):
        return None
    return path


def unpack(
    source: IO[bytes], target: Path, *, limit_bytes: int, advance: Callable[[int], None] = lambda _: None
) -> int:
    """Unpack a gzipped tar stream into `target`, which must be empty or absent; returns the number of files.

    `advance` is told the bytes written. The stream is read once, from front to back.

    Raises:
        UnsafeArchive: see the module.
        OSError: the disk is full or the folder cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    files = written = 0
    try:
        with tarfile.open(fileobj=source, mode="r|gz") as archive:
            for member in archive:
                path = member_path(member.name)
                if path is None:
                    continue
                place = target / path
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                if not member.isreg():
                    raise UnsafeArchive(f"an entry is neither file nor folder: {member.name!r}")
                written += member.size
                if written > limit_bytes:
                    raise UnsafeArchive(f"the archive unpacks to more than {limit_bytes} bytes")
                place.parent.mkdir(parents=True, exist_ok=True)
                _write(archive, member, place)
                files += 1
                advance(member.size)
    except (tarfile.TarError, EOFError) as error:
        raise UnsafeArchive(f"the archive is damaged or cut short: {error}") from error
    except FileExistsError as error:
        raise UnsafeArchive(f"an entry occurs twice: {error.filename}") from error
    except OSError as error:
        if error.errno is None:  # gzip's own BadGzipFile; a full disk carries an errno
            raise UnsafeArchive(f"the archive is damaged: {error}") from error
        raise
    return files


def read_members(source: IO[bytes], wanted: Collection[str], take: Callable[[str, IO[bytes]], None]) -> None:
    """Call `take(name, stream)` for each entry of `wanted`, in the archive's order, while the stream is read once.

    Raises:
        UnsafeArchive: an entry is missing, not a plain file, or the archive is damaged.
    """
    missing = set(wanted)
    try:
        with tarfile.open(fileobj=source, mode="r|gz") as archive:
            for member in archive:
                if member.name not in missing:
                    continue
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    raise UnsafeArchive(f"{member.name!r} is not a plain file")
                take(member.name, stream)
                missing.discard(member.name)
                if not missing:
                    return
    except (tarfile.TarError, EOFError) as error:
        raise UnsafeArchive(f"the archive is damaged or cut short: {error}") from error
    except OSError as error:
        if error.errno is None:
            raise UnsafeArchive(f"the archive is damaged: {error}") from error
        raise
    raise UnsafeArchive(f"the archive lacks {', '.join(sorted(missing))}")


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    stream = archive.extractfile(member)
    if stream is None:
        raise UnsafeArchive(f"{member.name!r} has no content")
    with stream, open(place, "xb") as file:
        shutil.copyfileobj(stream, file, _CHUNK)
    if place.stat().st_size != member.size:
        raise UnsafeArchive(f"{member.name!r} is cut short")
