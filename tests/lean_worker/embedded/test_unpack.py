"""Unpacking of hostile and damaged archives."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import pytest
from fake_registry import tarball

from lean_worker.engines.embedded.unpack import UnsafeArchive, member_path, read_members, unpack


def entry(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


def test_files_and_folders_arrive_and_resource_forks_do_not(tmp_path: Path) -> None:
    data = tarball({"./": entry("./", tarfile.DIRTYPE), "./._a": b"x", "./a": b"1", "./d/._b": b"x", "./d/b": b"22"})
    seen: list[int] = []
    assert unpack(io.BytesIO(data), tmp_path / "t", limit_bytes=100, advance=seen.append) == 2
    assert sorted(str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*")) == ["a", "d", "d/b"]
    assert seen == [1, 2]


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a\\b", "."])
def test_paths_that_leave_the_folder(name: str) -> None:
    if name == ".":
        assert member_path(name) is None
        return
    with pytest.raises(UnsafeArchive):
        member_path(name)


@pytest.mark.parametrize(
    "hostile",
    [
        entry("link", tarfile.SYMTYPE, "/etc"),
        entry("link", tarfile.LNKTYPE, "good"),
        entry("pipe", tarfile.FIFOTYPE),
        entry("device", tarfile.CHRTYPE),
        entry("../up", tarfile.REGTYPE),
    ],
)
def test_hostile_entries_end_the_unpacking(tmp_path: Path, hostile: tarfile.TarInfo) -> None:
    data = tarball({"good": b"1", hostile.name: hostile})
    with pytest.raises(UnsafeArchive):
        unpack(io.BytesIO(data), tmp_path / "t", limit_bytes=100)
    assert [p.name for p in tmp_path.rglob("*")] == ["t", "good"]


def test_a_bomb_is_stopped_before_it_is_written(tmp_path: Path) -> None:
    data = tarball({"small": b"1", "big": bytes(1_000_000)})
    with pytest.raises(UnsafeArchive, match="more than 1000 bytes"):
        unpack(io.BytesIO(data), tmp_path / "t", limit_bytes=1000)
    assert not (tmp_path / "t" / "big").exists()


def test_an_entry_twice(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a"))
        archive.addfile(tarfile.TarInfo("a"))
    buffer.seek(0)
    with pytest.raises(UnsafeArchive, match="twice"):
        unpack(buffer, tmp_path / "t", limit_bytes=100)


@pytest.mark.parametrize("keep", [0, 5, 40, 20_000, 39_000])
def test_a_truncated_archive_is_said_to_be_damaged(tmp_path: Path, keep: int) -> None:
    data = tarball({f"f{i}": random.Random(i).randbytes(2000) for i in range(20)})
    with pytest.raises(UnsafeArchive):
        unpack(io.BytesIO(data[:keep]), tmp_path / "t", limit_bytes=1_000_000)


def test_wanted_entries_in_the_order_of_the_archive() -> None:
    data = tarball({"b": b"2", "x": b"0", "a": b"1"})
    seen: dict[str, bytes] = {}
    read_members(io.BytesIO(data), ["a", "b"], lambda name, stream: seen.update({name: stream.read()}))
    assert list(seen.items()) == [("b", b"2"), ("a", b"1")]


def test_a_missing_entry_is_named() -> None:
    with pytest.raises(UnsafeArchive, match="lacks a"):
        read_members(io.BytesIO(tarball({"b": b"2"})), ["a", "b"], lambda name, stream: None)
