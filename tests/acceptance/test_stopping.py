"""How long `lean-reward up` takes to stop while a batch runs."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.acceptance.conftest import Platform, start_platform

pytestmark = pytest.mark.lean

SLOW = (
    "set_option maxRecDepth 1000000 in\ntheorem slow : ∀ a b c d : Fin 60, a + b + c + d = d + c + b + a := by decide\n"
)


def post(platform: Platform) -> None:
    with platform.client() as client, contextlib.suppress(httpx.TransportError):
        client.post("/v1/proofs/score", json={"candidates": [{"id": "a", "code": SLOW}], "lean_timeout_s": 300})


def test_a_second_signal_stops_at_once_what_the_first_lets_go_on(tmp_path: Path) -> None:
    environment = {"LEAN_REWARD_GATEWAY_DRAIN_S": "300", "LEAN_REWARD_GATEWAY_HEARTBEATS": "1000000000"}
    platform = start_platform(tmp_path / "up.log", "--workers", "1", **environment)
    batch = threading.Thread(target=post, args=(platform,))
    try:
        batch.start()
        with platform.client() as client:
            while "lean_reward_batches_in_flight 1.0" not in client.get("/metrics").text:
                time.sleep(0.05)
        platform.process.send_signal(signal.SIGTERM)
        time.sleep(1.5)
        assert platform.process.poll() is None, "the batch runs, so it drains"
        assert "running batches may go on for 300 s (LEAN_REWARD_GATEWAY_DRAIN_S)" in platform.log.read_text()
        platform.process.send_signal(signal.SIGTERM)
        assert platform.process.wait(timeout=60) == 0, platform.log.read_text()[-4000:]
        batch.join(timeout=10)
        assert not batch.is_alive()
    finally:
        platform.process.kill()
