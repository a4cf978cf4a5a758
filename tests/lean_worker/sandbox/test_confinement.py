"""A hostile child in each tier that this machine offers: everything it tries is contained."""

import json
import os
import platform
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lean_worker.sandbox import Confinement, Limits, SandboxUnavailable, Tier, choose, confine, usable
from lean_worker.sandbox.policy import MIB

CHILD = Path(__file__).with_name("hostile_child.py")
CONFINING = [tier for tier in (Tier.BUBBLEWRAP, Tier.LANDLOCK) if tier in usable()]
LIMITS = Limits(memory_bytes=512 * MIB, cpu_s=20, file_bytes=32 * MIB)


@pytest.fixture(params=CONFINING, ids=str)
def tier(request):
    return request.param


def attack(tier, *arguments, limits=LIMITS, scratch_bytes=64 * MIB, timeout=60.0):
    python = Path(sys.executable).resolve()
    policy = Confinement(
        limits,
        CHILD.parent,
        read_only=(Path(sys.base_prefix), CHILD.parent),
        environment={"LANG": "C.UTF-8"},
        scratch_bytes=scratch_bytes,
    )
    with confine(tier, [str(python), "-I", "-S", str(CHILD), *map(str, arguments)], policy) as confined:
        done = subprocess.run(
            [word.replace("{scratch}", confined.scratch) for word in confined.argv],
            pass_fds=confined.pass_fds,
            env=confined.environment,
            capture_output=True,
            timeout=timeout,
            start_new_session=True,
            check=False,
        )
    return done, (json.loads(done.stdout) if done.stdout else None)


def test_this_machine_offers_a_confining_tier():
    assert CONFINING, "install bubblewrap, or run on a kernel with Landlock"


def test_a_program_runs_and_may_use_threads(tier):
    done, seen = attack(tier, "threads")
    assert (done.returncode, seen) == (0, {"ran": 1}), done.stderr


def test_files_outside_cannot_be_read(tier, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("redis password")
    for path in (secret, Path("/etc/passwd"), Path(f"/proc/{os.getpid()}/environ"), Path.home() / ".profile"):
        _, seen = attack(tier, "read_files", path)
        assert not seen[str(path)]["done"], path


def test_what_it_may_read_it_may_not_write(tier):
    planted = CHILD.parent / "planted"
    _, seen = attack(tier, "write_files", planted, CHILD, "/usr/planted", "/dev/shm/planted", "/planted")
    assert not any(result["done"] for result in seen.values()), seen
    assert not planted.exists()
    assert "planted" not in CHILD.read_text().splitlines()[0]


def test_the_network_is_out_of_reach(tier):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        _, seen = attack(tier, "connect", server.getsockname()[1])
        assert not any(result["done"] for result in seen.values()), seen
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_process_is_started_and_none_is_left(tier):
    before = {process.pid for process in psutil.process_iter()}
    _, seen = attack(tier, "fork", 200)
    assert seen == {"children": 0, "errors": ["[Errno 1] Operation not permitted"]}
    left = [p for p in psutil.process_iter(["cmdline"]) if p.pid not in before and CHILD.name in str(p.info["cmdline"])]
    assert left == []


def test_memory_is_bounded(tier):
    _, seen = attack(tier, "fill_memory", 2000, limits=Limits(memory_bytes=256 * MIB, cpu_s=30))
    assert seen["stopped"]
    assert seen["mebibytes"] < 256


def test_one_file_is_bounded(tier):
    _, seen = attack(tier, "one_big_file", "{scratch}", 200, scratch_bytes=512 * MIB)
    assert not seen["done"]
    assert "File too large" in seen["error"]


def test_the_private_folder_is_bounded_where_it_is_a_file_system_of_its_own():
    if Tier.BUBBLEWRAP not in CONFINING:
        pytest.skip("needs bubblewrap; under Landlock the engine watches the folder's size")
    _, seen = attack(Tier.BUBBLEWRAP, "fill_disk", "{scratch}", 400, scratch_bytes=64 * MIB)
    assert "No space left" in seen["error"]
    assert seen["mebibytes"] <= 64


def test_the_private_folder_is_gone_afterwards():
    policy = Confinement(LIMITS, Path("/usr"))
    with confine(Tier.LANDLOCK, ["/usr/bin/true"], policy) as confined:
        folder = confined.scratch_outside
        (folder / "left").write_text("behind")
    assert not folder.exists()


def test_processor_time_is_bounded(tier):
    start = time.monotonic()
    done, _ = attack(tier, "burn", limits=Limits(memory_bytes=256 * MIB, cpu_s=1))
    assert done.returncode != 0
    assert time.monotonic() - start < 15


def test_others_cannot_be_signalled(tier):
    with subprocess.Popen(["sleep", "30"]) as bystander:
        _, seen = attack(tier, "signal_process", bystander.pid)
        assert not seen["kill"]["done"]
        assert bystander.poll() is None
        bystander.kill()


def test_the_environment_is_cleared_and_others_are_invisible(tier, monkeypatch):
    monkeypatch.setenv("LEAN_REWARD_QUEUE_URL", "redis://:secret@127.0.0.1:6379")
    _, seen = attack(tier, "see")
    assert set(seen["environment"]) <= {"LANG", "HOME", "TMPDIR", "PWD", "LC_CTYPE"}
    assert seen["folder"] == str(CHILD.parent)
    processes = seen["processes"]
    assert not processes["done"] or len(json.loads(processes["result"])) <= 3, processes


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
def test_calls_behind_the_filter_are_refused(tier):
    _, seen = attack(tier, "raw_calls")
    assert {name for name, (result, _) in seen.items() if result >= 0} == set()
    assert seen["clone3"][1] == "Function not implemented"


def test_a_child_dies_with_its_worker(tier, tmp_path):
    script = (
        "import subprocess, sys, time\n"
        "from pathlib import Path\n"
        "from lean_worker.sandbox import *\n"
        f"c = confine(Tier({str(tier)!r}), ['/usr/bin/sleep', '60'], Confinement(Limits(1 << 30, 60), Path('/usr')))\n"
        "p = subprocess.Popen(c.argv, pass_fds=c.pass_fds, env={}, start_new_session=True)\n"
        "print(p.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as worker:
        child = psutil.Process(int(worker.stdout.readline()))
        deadline = time.monotonic() + 10
        while "sleep" not in str([p.cmdline() for p in [child, *child.children(recursive=True)]]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        family = [child, *child.children(recursive=True)]
        worker.kill()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_auto_never_means_no_sandbox(monkeypatch):
    monkeypatch.setattr("lean_worker.sandbox.detect.fault", lambda tier: f"{tier} does not work here")
    with pytest.raises(SandboxUnavailable, match=r"bubblewrap: .* does not work here.*LEAN_REWARD_REPL_SANDBOX=off"):
        choose("auto")
    assert choose("off") is Tier.LIMITS


def test_a_named_tier_is_not_replaced_by_another(monkeypatch):
    monkeypatch.setattr(
        "lean_worker.sandbox.detect.fault", lambda tier: None if tier is Tier.LANDLOCK else "namespaces are forbidden"
    )
    assert choose("auto") is Tier.LANDLOCK
    with pytest.raises(SandboxUnavailable, match="namespaces are forbidden"):
        choose("bubblewrap")
