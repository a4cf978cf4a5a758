"""The whole platform under mixed and hostile load for a long time: right rewards, and nothing that grows.

    python bench/soak.py --minutes 30            (`make soak`)
    python bench/soak.py --minutes 1 --json

Real processes: a queue, a gateway, two Lean workers. Trainers send the demonstration candidates, each repetition
another program: right and wrong proofs, cheats, programs that time out, that end their engine, that change its
environment, that are too long. Hostile clients send broken JSON, bombs and broken requests, and leave in the middle of
batches.

Each part's resident memory, file descriptors and processes and the queue's keys are sampled every second. After a
warm-up (a quarter of the time, at least 20 s) a straight line is fitted to each series; what it grows by over the rest
of the run must stay below the bound in the table. A single engine's memory is a saw-tooth by design (it is replaced at
a limit), so its bound is wide, and its highest value is bounded, too. Keys must also all have an end: a key without a
time to live, or with one beyond what the settings allow, fails the run however short it is.

Exit status: 0 all is flat and right, 1 it is not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import statistics
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
from redis import Redis

from bench.candidates import Candidate, read_candidates
from bench.machine import describe
from bench.processes import Platform, running
from reward_gateway.client import Client, RewardServerError

EXAMPLES = Path(__file__).parents[1] / "examples" / "proofs.jsonl"
WORKERS = 2
TRAINERS = 2
BATCH = 16
LEAN_TIMEOUT_S = 3.0
DEADLINE_S = 60.0
KEEP_S = 20.0
LONGEST_LIFE_S = DEADLINE_S + KEEP_S + 120.0  # of a key: what a batch leaves must end by itself soon after it
SETTINGS = {
    "LEAN_REWARD_QUEUE_KEEP_S": str(KEEP_S),
    "LEAN_REWARD_GATEWAY_DEADLINE_S": str(DEADLINE_S),
    "LEAN_REWARD_LOG_LEVEL": "error",
}
ENGINE_LIMIT_MB = 2_000.0  # resident, of one engine's process

MB = 1_000_000


@dataclass(frozen=True)
class Bound:
    """A series may grow by this over the measured part of a run: so much, or this part of its mean if that is more."""

    amount: float
    part: float

    def allowed(self, mean: float) -> float:
        return max(self.amount, self.part * mean)


BOUNDS = {
    "queue rss MB": Bound(16, 0.1),
    "gateway rss MB": Bound(24, 0.1),
    "workers rss MB": Bound(24, 0.1),
    "engines rss MB": Bound(300, 0.3),
    "queue fds": Bound(6, 0.2),
    "gateway fds": Bound(6, 0.2),
    "workers fds": Bound(6, 0.2),
    "engines fds": Bound(6, 0.2),
    "processes": Bound(2, 0.0),
    "keys": Bound(100, 0.25),
}


@dataclass
class Load:
    """What was sent and what came of it."""

    answered: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    hostile: Counter[str] = field(default_factory=Counter)
    stopping: threading.Event = field(default_factory=threading.Event)

    def judge(self, sent: Candidate, expected: str | None, verdict: str, reward: float | None) -> None:
        """A verdict may be missing, never the opposite; `unknown` has no reward."""
        self.answered[verdict] += 1
        if verdict == "unknown":
            if reward is not None:
                self.wrong.append(f"{sent.id}: unknown with reward {reward}")
        elif expected in ("valid", "invalid") and verdict != expected:
            self.wrong.append(f"{sent.id}: {verdict}, expected {expected}")


def verdicts() -> dict[str, str]:
    rows = (json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if line.strip())
    return {str(row["id"]): row["expected"]["verdict"] for row in rows}


def too_long(number: int) -> Candidate:
    return Candidate(
        f"too-long.{number}", f"theorem t{number} : True := trivial\n--{'x' * 300_000}", None, "", "too_long"
    )


def train(load: Load, url: str, seed: int) -> None:
    """One trainer: batch after batch until the end."""
    dice, known, turn = random.Random(seed), verdicts(), 0
    base = read_candidates(EXAMPLES, None)
    with Client(url, patience_s=60.0) as client:
        while not load.stopping.is_set():
            turn += 1
            picked = [*dice.sample(base, BATCH), *([too_long(turn)] if turn % 10 == 0 else [])]
            sent = {
                f"{index}": Candidate(each.id, f"{each.code}\n-- {seed}.{turn}", each.statement, each.header, None)
                for index, each in enumerate(picked)
            }
            rows = [
                {"id": key, "code": each.code, "statement": each.statement, "header": each.header}
                for key, each in sent.items()
            ]
            try:
                answer = client.score_proofs(
                    rows, deadline_s=DEADLINE_S, lean_timeout_s=LEAN_TIMEOUT_S, cutoff={"policy": "all"}
                )
            except RewardServerError as error:
                load.failed.append(str(error))
                continue
            for result in answer.results:
                candidate = sent[result.id]
                expected = known.get(candidate.id.rpartition(".")[0], "invalid")
                load.judge(candidate, expected, result.verdict.value, result.reward)


def harass(load: Load, url: str) -> None:
    """A hostile client: nothing that it does may cost anything that lasts."""
    dice = random.Random(0)
    address = (urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 80)
    bomb = zlib.compress(bytes(64 << 20), 9)
    candidate = {"id": "h", "code": "theorem h : ∀ a b c : Fin 12, a + b + c = c + b + a := by decide"}

    def leave_in_the_middle() -> None:
        body = json.dumps({"candidates": [candidate | {"code": f"{candidate['code']} -- {dice.random()}"}]}).encode()
        with socket.create_connection(address, 5) as line:
            line.sendall(b"POST /v1/proofs/score HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
            line.sendall(b"content-length: %d\r\n\r\n" % len(body) + body)
            time.sleep(0.2)

    def half_a_body() -> None:
        with socket.create_connection(address, 5) as line:
            line.sendall(b"POST /v1/proofs/score HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{")

    def post(content: bytes, **headers: str) -> None:
        httpx.post(f"{url}/v1/proofs/score", content=content, headers=headers, timeout=30)

    acts = {
        "left in the middle": leave_in_the_middle,
        "half a body": half_a_body,
        "broken JSON": lambda: post(b'{"candidates": [{"id": ' * 50),
        "deep JSON": lambda: post(b"[" * 100_000),
        "a bomb": lambda: post(bomb, **{"content-encoding": "deflate", "content-type": "application/json"}),
        "no HTTP": lambda: socket.create_connection(address, 5).close(),
    }
    while not load.stopping.wait(0.5):
        name = dice.choice(list(acts))
        load.hostile[name] += 1
        with contextlib.suppress(httpx.TransportError, OSError):
            acts[name]()


def sample(platform: Platform, redis: Redis) -> dict[str, float]:
    """All series at this moment. An engine that is being replaced may be missing from it."""
    found: dict[str, float] = dict.fromkeys(BOUNDS, 0.0)
    found["engine rss MB"] = 0.0
    for part, pids in platform.parts.items():
        for pid in pids:
            leader = psutil.Process(pid)
            for process in (leader, *leader.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    name = part if process.pid == pid else "engines"
                    rss = process.memory_info().rss / MB
                    found[f"{name} rss MB"] += rss
                    found[f"{name} fds"] += process.num_fds()
                    found["processes"] += 1
                    if name == "engines":
                        found["engine rss MB"] = max(found["engine rss MB"], rss)
    found["keys"] = float(redis.dbsize())
    return found


def immortal_keys(redis: Redis) -> list[str]:
    """Keys that end too late or never. What lists processes, and verdicts, are kept as the settings say."""
    found = []
    for key in redis.scan_iter(count=1000):
        left_ms = redis.pttl(key)
        lasting = b"{verdicts}" in key or b":home" in key or b"workers" in key
        if left_ms == -1 or (left_ms > LONGEST_LIFE_S * 1000 and not lasting):
            found.append(f"{key.decode(errors='replace')} ({left_ms} ms)")
    return found


@dataclass(frozen=True)
class Row:
    """One series after the warm-up: where its line begins and ends, and what it may grow by."""

    name: str
    first: float
    last: float
    highest: float
    slope_per_hour: float
    growth: float
    allowed: float

    @property
    def flat(self) -> bool:
        return self.growth <= self.allowed


def fit(name: str, times: Sequence[float], values: Sequence[float], bound: Bound) -> Row:
    """Least squares over the samples; `growth` is what the line rises by from the first to the last."""
    line = statistics.linear_regression(times, values)
    span = times[-1] - times[0]
    begin = line.intercept + line.slope * times[0]
    return Row(
        name=name,
        first=round(begin, 1),
        last=round(begin + line.slope * span, 1),
        highest=round(max(values), 1),
        slope_per_hour=round(line.slope * 3600, 1),
        growth=round(line.slope * span, 1),
        allowed=round(bound.allowed(statistics.fmean(values)), 1),
    )


def soak(minutes: float) -> dict[str, Any]:
    machine, load = describe(), Load()
    times: list[float] = []
    series: dict[str, list[float]] = {}
    with running("embedded", workers=WORKERS, **SETTINGS) as platform:
        redis = Redis.from_url(platform.queue_url)
        threads = [threading.Thread(target=train, args=(load, platform.url, seed)) for seed in range(1, TRAINERS + 1)]
        threads.append(threading.Thread(target=harass, args=(load, platform.url)))
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        warm_up_s = max(20.0, 15 * minutes)
        try:
            while (now := time.monotonic() - begin) < 60 * minutes:
                if now >= warm_up_s:
                    times.append(now)
                    for name, value in sample(platform, redis).items():
                        series.setdefault(name, []).append(value)
                time.sleep(1.0)
        finally:
            load.stopping.set()
            for thread in threads:
                thread.join()
        elapsed_s = time.monotonic() - begin
        immortal = immortal_keys(redis)
        redis.close()
    rows = [fit(name, times, series[name], bound) for name, bound in BOUNDS.items()]
    engine = max(series["engine rss MB"])
    faults = [f"{row.name} grows by {row.growth}, allowed {row.allowed}" for row in rows if not row.flat]
    if engine > ENGINE_LIMIT_MB:
        faults.append(f"an engine took {engine:.0f} MB, allowed {ENGINE_LIMIT_MB:.0f}")
    faults += [f"a key lives too long: {key}" for key in immortal[:10]]
    faults += [f"wrong: {wrong}" for wrong in load.wrong[:10]]
    faults += [f"failed: {failure}" for failure in load.failed[:10]]
    if not load.answered["valid"] or not load.answered["invalid"]:
        faults.append(f"too little was answered: {dict(load.answered)}")
    return {
        "machine": machine,
        "minutes": minutes,
        "candidates": sum(load.answered.values()),
        "per_second": round(sum(load.answered.values()) / elapsed_s, 2),
        "verdicts": dict(load.answered),
        "hostile": dict(load.hostile),
        "highest_engine_rss_mb": round(engine, 1),
        "series": [{**row.__dict__, "flat": row.flat} for row in rows],
        "faults": faults,
    }


def table(report: Mapping[str, Any]) -> str:
    lines = [f"{'':<16}{'first':>9}{'last':>9}{'highest':>9}{'per hour':>10}{'growth':>9}{'allowed':>9}"]
    lines += (
        f"{row['name']:<16}{row['first']:>9}{row['last']:>9}{row['highest']:>9}{row['slope_per_hour']:>10}"
        f"{row['growth']:>9}{row['allowed']:>9}{'' if row['flat'] else '  grows'}"
        for row in report["series"]
    )
    counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(report["verdicts"].items()))
    lines.append(f"{report['candidates']} candidates in {report['minutes']:g} minutes: {counted}")
    lines.append("hostile calls: " + ", ".join(f"{count} {name}" for name, count in sorted(report["hostile"].items())))
    lines += report["faults"] or ["flat and right"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    if arguments.minutes < 0.75:
        parser.error("--minutes: at least 0.75, to have something left after the warm-up")
    report = soak(arguments.minutes)
    print(json.dumps(report) if arguments.json else table(report))
    sys.exit(1 if report["faults"] else 0)


if __name__ == "__main__":
    main()
