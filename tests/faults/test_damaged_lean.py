"""Files of Lean that change under a running worker: a snapshot is built again, a changed program is never run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from lean_worker.engines.embedded.layout import Installation
from tests.faults.lean_home import copied, flip
from tests.faults.services_under_fault import WHOLE_SUITE, Platform, until
from tests.faults.traffic import Traffic

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]


@dataclass
class Housed:
    """A platform whose one worker runs the Lean in `home`."""

    platform: Platform
    home: Installation

    def kill_lean(self) -> None:
        for host in self.platform.worker[0].hosts():
            host.kill()


@pytest.fixture(scope="module")
def housed(tmp_path_factory: pytest.TempPathFactory, installation: Installation) -> Iterator[Housed]:
    folder = tmp_path_factory.mktemp("housed")
    home = copied(installation, folder / "home")
    platform = Platform(folder, workers=1, variables={"LEAN_REWARD_LEAN_HOME": str(home.root)})
    try:
        platform.start()
        yield Housed(platform, home)
    finally:
        platform.stop()


def test_a_damaged_snapshot_is_built_again(housed: Housed, recovered: Recovered) -> None:
    platform = housed.platform
    (snapshot,) = housed.home.snapshots.glob("*.img")
    whole = snapshot.read_bytes()
    with Traffic(platform.url, trainers=1) as traffic:
        traffic.flows(1)
        flip(snapshot, 0.6)
        housed.kill_lean()
        recovered(traffic.flows())
    traffic.ledger.verify()
    (again,) = housed.home.snapshots.glob("*.img")
    assert again.stat().st_size == len(whole)
    assert again.read_bytes() != whole or again.stat().st_mtime > 0


@pytest.mark.parametrize("name", ["lean.wasm", "lean.js"])
def test_a_changed_program_is_never_run(housed: Housed, recovered: Recovered, name: str) -> None:
    """The last byte of the module's data, or of the glue's code: it would start, and might even give right verdicts."""
    platform, path = housed.platform, housed.home.root / name
    worker = platform.worker[0]
    failed = worker.count("lean_reward_engine_warm_ups_total", result="failed")
    whole = path.read_bytes()
    with Traffic(platform.url, trainers=1) as traffic:
        traffic.flows(1)
        if name == "lean.js":
            path.write_bytes(whole + b"\n")
        else:
            flip(path, 0.999)
        housed.kill_lean()
        until(lambda: worker.count("lean_reward_engine_warm_ups_total", result="failed") > failed, "it refuses")
        assert worker.said("has been changed since it was installed")
        answered = traffic.answered
        path.write_bytes(whole)
        recovered(traffic.flows())
        assert traffic.answered > answered
    traffic.ledger.verify()
