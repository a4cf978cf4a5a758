"""Wall clocks that jump by an hour under load: no lease and no cutoff of a process depends on one."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.services_under_fault import WHOLE_SUITE, Platform, Service
from tests.faults.traffic import Traffic

pytestmark = [*WHOLE_SUITE, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for the shim")]
Recovered = Callable[[float], None]
HOUR_S = 3600


@dataclass
class Clocks:
    """The platform, each service with a wall clock that can be set by itself."""

    platform: Platform
    files: dict[str, Path]

    def shift(self, service: Service, seconds: int) -> None:
        with self.files[service.name].open("r+b") as file:
            file.write(struct.pack("q", seconds))


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clocks]:
    folder = tmp_path_factory.mktemp("clocks")
    shim = folder / "wall_clock.so"
    source = Path(__file__).with_name("wall_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(shim), str(source)], check=True)
    platform = Platform(folder)
    made = Clocks(platform, {})
    for service in platform.services:
        made.files[service.name] = folder / f"{service.name}.clock"
        made.files[service.name].write_bytes(struct.pack("q", 0))
        service.environment = {
            **service.environment,
            "LD_PRELOAD": str(shim),
            "WALL_CLOCK_SHIFT": str(made.files[service.name]),
        }
    try:
        platform.start()
        yield made
    finally:
        platform.stop()


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
@pytest.mark.parametrize("service", ["redis", "gateway-0", "worker-0"])
def test_a_jump_of_one_clock(clocks: Clocks, recovered: Recovered, service: str, jump_s: int) -> None:
    platform = clocks.platform
    (jumper,) = (each for each in platform.services if each.name == service)
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        clocks.shift(jumper, jump_s)
        traffic.flows()
        platform.a_busy_worker()
        clocks.shift(jumper, 0)
        recovered(traffic.flows())
    traffic.ledger.verify()
    assert platform.gateway[0].ready()


def test_a_worker_that_dies_while_the_clock_of_redis_is_set_back(clocks: Clocks, recovered: Recovered) -> None:
    """Its leases end an hour later than they should by that clock, and are found all the same."""
    platform = clocks.platform
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        victim = platform.a_busy_worker()
        victim.kill()
        clocks.shift(platform.redis, -HOUR_S)
        victim.start()
        recovered(traffic.flows())
    clocks.shift(platform.redis, 0)
    traffic.ledger.verify()
    platform.wait_ready()
