"""The page at `/`: what it is fed, who may see it, and what a person sees in a real browser."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from services.contracts.live import LiveView
from services.runtime.trouble import RecentTrouble
from tests.reward_gateway.place import Place, candidates, until

KEYS = f"trainer:{hashlib.sha256(b'sesame').hexdigest()}"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


async def test_the_view_counts_what_runs_and_what_was_rewarded(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    before = LiveView.model_validate_json((await gateway.client.get("/v1/live")).content)
    assert (before.batches, before.missing) == ((), ())
    assert (before.engines.ready, before.engines.all) == (2, 2)
    await gateway.score(candidates("t", "wrong_t"))
    slow = asyncio.create_task(gateway.score(candidates("a", "slow_a"), cutoff={"deadline_s": 15}))
    await until(lambda: any(batch.progress().decided == 1 for batch in gateway.gateway.batches.running))
    after = LiveView.model_validate_json((await gateway.client.get("/v1/live")).content)
    assert [(b.mode.value, b.candidates, b.decided, b.lean, b.deadline_s) for b in after.batches] == [
        ("lean", 2, 1, 1, 15.0)
    ]
    gained = {(r.source.value, r.verdict.value): r.count for r in after.rewards}
    for r in before.rewards:
        gained[r.source.value, r.verdict.value] -= r.count
    assert {kind: count for kind, count in gained.items() if count} == {("lean", "valid"): 1, ("lean", "invalid"): 1}
    assert after.lean_share.batches - before.lean_share.batches == 1
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_neither_ids_nor_programs_are_shown(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    named = [{"id": "secret-id", "group": "secret-group", "code": "theorem slow_secret : True := trivial"}]
    slow = asyncio.create_task(gateway.score(named, batch_id="secret-batch"))
    await until(lambda: gateway.gateway.batches.running)
    assert b"secret" not in (await gateway.client.get("/v1/live")).content
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_where_keys_are_set_the_numbers_want_one_and_the_empty_page_does_not(place: Place) -> None:
    gateway = await place.gateway(keys=KEYS)
    assert (await gateway.client.get("/v1/live")).status_code == 401
    assert (await gateway.client.get("/v1/live", headers={"Authorization": "Bearer sesame"})).status_code == 200
    page = await gateway.client.get("/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "connect-src 'self'" in page.headers["content-security-policy"]


async def test_events_come_until_the_gateway_drains(place: Place) -> None:
    gateway = await place.http()
    events = []
    async with gateway.client.stream("GET", "/v1/live", headers={"Accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line:
                events.append(LiveView.model_validate_json(line.removeprefix("data: ")))
            if len(events) == 2:
                gateway.gateway.batches.draining = True
    assert 2 <= len(events) <= 3
    assert events[0].missing[0].component == "lean"


def test_troubles_are_kept_without_their_fields_and_counted_when_alike() -> None:
    recent = RecentTrouble(kept=2)
    for level, event in (("info", "fine"), ("warning", "a"), ("error", "b"), ("error", "b"), ("warning", "c")):
        assert recent(None, "", {"level": level, "event": event, "detail": "sesame"})["detail"] == "sesame"
    assert [(t.level, t.event, t.times) for t in recent] == [("warning", "c", 1), ("error", "b", 2)]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for switch in (
        "--headless=new",
        "--no-sandbox",  # the tests may run as root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--window-size=1180,980",
        f"--user-data-dir={tmp_path / 'profile'}",
    ):
        options.add_argument(switch)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.mark.skipif(None in (CHROMIUM, DRIVER), reason="Chromium: apt-get install chromium chromium-driver")
async def test_a_person_watches_a_batch_in_a_browser(place: Place, browser: webdriver.Chrome) -> None:
    await place.worker()
    gateway = await place.http(keys=KEYS)
    gateway.client.headers["Authorization"] = "Bearer sesame"
    text = {"": ""}

    def shown(element: str, wanted: str) -> None:
        def has_come(driver: webdriver.Chrome) -> bool:
            text[element] = driver.find_element(By.ID, element).text
            return wanted in text[element]

        WebDriverWait(browser, 30).until(has_come, f"{element}: {wanted!r}, not {text.get(element)!r}")

    await asyncio.to_thread(browser.get, str(gateway.client.base_url))
    await asyncio.to_thread(shown, "ask", "WANTS AN API KEY")
    await asyncio.to_thread(browser.find_element(By.ID, "secret").send_keys, "sesame\n")
    await asyncio.to_thread(shown, "state", "ready")
    await asyncio.to_thread(shown, "engines", "2 of 2")
    await gateway.score(candidates(*(f"t{i}" for i in range(40)), *(f"wrong_{i}" for i in range(24))))
    await asyncio.to_thread(shown, "sources-key", "lean")
    mixed = candidates(*(f"u{i}" for i in range(300)), *(f"slow_{i}" for i in range(212)))
    slow = asyncio.create_task(gateway.score(mixed))
    await asyncio.to_thread(shown, "batches", "300 of 512")
    await asyncio.to_thread(shown, "batch-count", "1")
    await asyncio.to_thread(shown, "share", "100%")
    await gateway.client.post("/v1/proofs/score", json={"candidates": []})
    await asyncio.to_thread(shown, "problems", "invalid_request")
    assert not [entry for entry in browser.get_log("browser") if "401" not in entry["message"]]
    if folder := os.environ.get("LEAN_TEST_SCREENSHOTS"):
        browser.save_screenshot(Path(folder) / "live.png")
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
    await gateway.stop()
    await asyncio.to_thread(shown, "state", "no connection")
