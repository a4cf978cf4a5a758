"""The Redis of compose.yaml, really started: a gateway and a worker live with their users' rights, and have no more."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from services.queue import JobQueue, connect
from tests.operations.dockerfiles import ROOT
from tests.operations.stack import free_port, wait_until
from tests.reward_gateway.place import InstantWorker, Place, candidates

START = ROOT / "docker" / "redis" / "start.sh"
pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="apt-get install redis-server")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder, number = tmp_path_factory.mktemp("redis"), free_port()
    acl = str(folder / "users.acl")
    environment = {
        "PATH": os.environ["PATH"],
        "REDIS_GATEWAY_PASSWORD": "g",
        "REDIS_WORKER_PASSWORD": "w",
        "REDIS_ACL_FILE": acl,
    }
    # Only what belongs to the container differs: its folders and the port.
    command = [str(START), "--dir", str(folder), "--aclfile", acl, "--port", str(number), "--bind", "127.0.0.1"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: ping(number) == "PONG", 20, (folder / "log").read_text())
        yield number
    finally:
        process.terminate()
        process.wait(20)


def ping(port: int) -> str:
    """As the health check of compose.yaml asks."""
    command = ["redis-cli", "-p", str(port), "--user", "health", "--pass", "none", "--no-auth-warning", "ping"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()


@pytest.fixture
async def worker(port: int) -> AsyncIterator[Redis]:
    redis = connect(f"redis://worker:w@127.0.0.1:{port}")
    yield redis
    await redis.aclose()


@pytest.fixture
async def gateway(port: int) -> AsyncIterator[Redis]:
    redis = connect(f"redis://gateway:g@127.0.0.1:{port}")
    yield redis
    await redis.aclose()


async def test_a_batch_is_scored_by_a_gateway_and_a_worker_with_their_own_users(port: int, worker: Redis) -> None:
    async with AsyncExitStack() as stack:
        place = Place(f"redis://gateway:g@127.0.0.1:{port}", "lean-reward", stack)
        checker = InstantWorker(JobQueue(worker, prefix="lean-reward"))
        await checker.start()
        stack.push_async_callback(checker.stop)
        served = await place.gateway()
        response = await served.score(candidates("a", "wrong_b"), batch_id="named")
        assert [result["verdict"] for result in response.json()["results"]] == ["valid", "invalid"]
        slow = await served.score(candidates("slow_c"), cutoff={"deadline_s": 0.5})
        assert slow.json()["results"][0]["verdict"] == "unknown"
        for _ in range(100):
            if checker.cancelled:
                break
            await asyncio.sleep(0.05)
        assert checker.cancelled, "the worker's user did not hear of the cancellation"
        assert (await checker.queue.reap()).crashed == 0
        assert (await checker.queue.stats()).workers >= 1


@pytest.mark.parametrize("key", ["lean-reward:batch:anonymous:named", "lean-reward:{verdicts}:k", "other:key"])
async def test_a_worker_reaches_no_key_outside_the_queue(worker: Redis, key: str) -> None:
    for call in (worker.get(key), worker.set(key, b"forged"), worker.delete(key)):
        with pytest.raises(NoPermissionError):
            await call


async def test_a_gateway_reaches_no_key_of_others(gateway: Redis) -> None:
    with pytest.raises(NoPermissionError):
        await gateway.set("other:key", b"")


@pytest.mark.parametrize(
    "command",
    [("FLUSHALL",), ("CONFIG", "GET", "*"), ("KEYS", "*"), ("ACL", "LIST"), ("SHUTDOWN",), ("SCRIPT", "FLUSH")],
)
async def test_neither_may_administer_the_server(worker: Redis, gateway: Redis, command: tuple[str, ...]) -> None:
    for redis in (worker, gateway):
        with pytest.raises(NoPermissionError):
            await redis.execute_command(*command)


@pytest.mark.parametrize("credentials", ["", "worker:wrong@", "default:@"])
async def test_nobody_else_gets_in(port: int, credentials: str) -> None:
    redis = connect(f"redis://{credentials}127.0.0.1:{port}")
    with pytest.raises(RedisError):
        await redis.ping()
    await redis.aclose()


async def test_the_user_of_the_health_check_can_do_nothing_else(port: int) -> None:
    redis = connect(f"redis://health:any@127.0.0.1:{port}")
    with pytest.raises(NoPermissionError):
        await redis.get("lean-reward:{lean}:leases")
    await redis.aclose()


def test_passwords_do_not_stand_in_the_acl_file(port: int, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "REDIS_GATEWAY_PASSWORD": "secret-g",
        "REDIS_WORKER_PASSWORD": "secret-w",
    }
    environment["REDIS_ACL_FILE"] = str(tmp_path / "users.acl")
    subprocess.run([str(START), "--version"], env=environment, capture_output=True, timeout=10, check=False)
    written = (tmp_path / "users.acl").read_text()
    assert "secret" not in written
    assert (tmp_path / "users.acl").stat().st_mode & 0o077 == 0
