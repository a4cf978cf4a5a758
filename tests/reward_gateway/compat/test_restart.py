"""A gateway killed and started again in the middle: with the retries that trainers make, no call is lost."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import httpx

from services.contracts.lean import CheckTask, LeanOutcome
from tests.reward_gateway.place import Place, by_name, theorem, until


async def start(place: Place, port: int) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "LEAN_REWARD_QUEUE_URL": place.url,
        "LEAN_REWARD_QUEUE_PREFIX": place.prefix,
        "LEAN_REWARD_GATEWAY_PORT": str(port),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.runtime.cli", "gateway", env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    place.stack.push_async_callback(end, process)
    return process


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def remote_rm(client: httpx.AsyncClient, url: str, name: str) -> float:
    """As slime calls: ten attempts with a growing pause, whatever the failure was."""
    sent = {"prompt": "", "response": f"```lean\n{theorem(name)}\n```", "label": f"theorem {name} : 1 + 1 = 2"}
    for attempt in range(10):
        try:
            answer = await client.post(url, json=sent)
            answer.raise_for_status()
            return float(answer.json()["score"])
        except httpx.HTTPError:
            await asyncio.sleep(min(2**attempt, 30) * 0.25)
    raise AssertionError(f"{name} was lost")


async def test_no_call_is_lost_when_the_gateway_is_killed(place: Place) -> None:
    restarted = False

    def slow_at_first(task: CheckTask) -> LeanOutcome | None:
        """Holds half of the checks until the restart."""
        return None if not restarted and "later" in task.code else by_name(task)

    worker = await place.worker(judge=slow_at_first)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = await start(place, port)
    url = f"http://127.0.0.1:{port}/compat/slime"
    names = [f"{kind}{when}_{i}" for i in range(60) for kind in ("wrong_", "t_") for when in ("", "later")]
    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=64)) as client:
        calls = [asyncio.create_task(remote_rm(client, url, name)) for name in names]
        await until(lambda: worker.held, 60)  # a process takes long to start on a loaded machine
        first.kill()
        await first.wait()
        restarted = True
        worker.held.clear()  # their leases run out, and they are claimed again
        await start(place, port)
        rewards = await asyncio.gather(*calls)
    assert rewards == [0.0 if name.startswith("wrong_") else 1.0 for name in names]
