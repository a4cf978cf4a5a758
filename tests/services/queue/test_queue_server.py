"""The embedded server: private, bounded, and gone with the process that started it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import pytest
from redis.exceptions import ConnectionError

from services.queue import QueueUnavailable, connect
from services.queue.server import EmbeddedServer

PARENT = """
import sys, time
from services.queue.server import EmbeddedServer
with EmbeddedServer() as server:
    print(server.pid, server._private, flush=True)
    time.sleep(60)
"""


def gone(pid: int, within_s: float = 5.0) -> bool:
    ends = time.monotonic() + within_s
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


async def test_it_serves_who_knows_the_password_and_nobody_else() -> None:
    with EmbeddedServer() as server:
        async with connect(server.url) as client:
            assert await client.ping()
        async with connect("unix://" + server.url.split("@", 1)[1]) as stranger:
            with pytest.raises(ConnectionError, match=r"(?i)auth"):
                await stranger.ping()
        socket = Path(unquote(urlsplit(server.url).path))
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((socket.parent / "server.conf").stat().st_mode) == 0o600
        assert psutil.Process(server.pid).net_connections("tcp") == []


async def test_it_is_bounded_and_drops_nothing_by_itself() -> None:
    with EmbeddedServer(maxmemory_mb=64) as server:
        async with connect(server.url) as client:
            config = await client.config_get("*")
            assert config["maxmemory"] == str(64 << 20)
            assert config["maxmemory-policy"] == "noeviction"
            assert (config["save"], config["appendonly"], config["port"]) == ("", "no", "0")


def test_it_ends_and_leaves_nothing_when_its_block_does() -> None:
    with EmbeddedServer() as server:
        folder = Path(unquote(urlsplit(server.url).path)).parent
        pid = server.pid
        assert server.alive()
        assert folder.exists()
    assert gone(pid)
    assert not folder.exists()


def test_it_ends_when_its_block_does_even_if_it_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.queue.server._STOP_S", 0.2)
    with EmbeddedServer() as server:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
    assert gone(pid)


def test_it_ends_when_its_process_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        first, folder = parent.stdout.readline().decode().split()
        pid = int(first)
        assert psutil.pid_exists(pid)
        assert Path(folder).exists()
        parent.kill()
    assert gone(pid)
    assert not Path(folder).exists()


def test_ctrl_c_is_left_to_its_process() -> None:
    with EmbeddedServer() as server:
        assert os.getpgid(server.pid) != os.getpgid(0)


def test_a_server_that_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho the disk is on fire\nexit 1\n")
    broken.chmod(0o700)
    with pytest.raises(QueueUnavailable, match="the disk is on fire"):
        EmbeddedServer(binary=broken).__enter__()


def test_its_folder_is_kept_and_may_have_an_odd_name(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" c\\d'
    with EmbeddedServer(folder, persist=True):
        pass
    assert (folder / "server.log").exists()
    assert [path for path in folder.iterdir() if "appendonly" in path.name]
