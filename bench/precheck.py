"""Throughput of the precheck in megabytes of UTF-8 source a second on one core.

    python bench/precheck.py [--seconds 2] [--json]

Honest programs of several kinds and hostile ones; each is measured alone, so that the slowest kind shows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

from services.contracts.outcomes import Profile
from services.proofs.policy import MAX_CHARACTERS
from services.proofs.precheck import precheck

_PROOF = """\
/-- The sum of the first `n` odd numbers is a square; the proof uses no `sorry`. -/
theorem sum_odd_{i} (n : ℕ) (h₀ : 0 < n) (h' : ∀ k, f k = 2 * k + 1) : ∑ k ∈ Finset.range n, f k = n ^ 2 := by
  -- induction on n, then arithmetic
  induction n with
  | zero => simp at h₀
  | succ m ih =>
    rw [Finset.sum_range_succ, h' m]
    have step : (m + 1) ^ 2 = m ^ 2 + (2 * m + 1) := by ring
    nlinarith [sq_nonneg (m - 1), ih (by omega), step, Nat.le_of_lt_succ (by simpa using h₀)]
"""
_ASCII = """\
theorem add_swap_{i} (a b c : Nat) (h1 : a + b = c) (h2 : b <= c) : b + a = c := by
  have step1 : a + b = b + a := Nat.add_comm a b
  have step2 : b + a = c := by rw [<- step1]; exact h1
  exact step2

"""


def _filled(text: str) -> str:
    return (text * (MAX_CHARACTERS // len(text) + 1))[:MAX_CHARACTERS]


def programs() -> Iterator[tuple[str, str]]:
    yield "mathlib style, 600 characters", _PROOF.replace("{i}", "1")
    yield "mathlib style, 5,000 characters", "".join(_PROOF.replace("{i}", str(i)) for i in range(10))
    yield "mathlib style, 256 Ki characters", _filled("".join(_PROOF.replace("{i}", str(i)) for i in range(500)))
    yield "ascii, 256 Ki characters", _filled("".join(_ASCII.replace("{i}", str(i)) for i in range(1000)))
    head = "theorem t : True := trivial\n"
    for name, unit in {
        "hostile: comment openers": "/-",
        "hostile: quotes": '"',
        "hostile: primes": "'",
        "hostile: holes": 's!"{',
        "hostile: shielded words": "a.sorry",
        "hostile: attributes": "@[",
        "hostile: options": "set_option a ",
    }.items():
        yield name, head + _filled(unit)[len(head) :]


def rate(source: str, seconds: float) -> float:
    size = len(source.encode())
    rounds, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        precheck(source, "", Profile.STRICT)
        rounds += 1
    return size * rounds / elapsed / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of the precheck, MB of source a second on one core")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each kind of program")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rates = {name: round(rate(source, arguments.seconds), 1) for name, source in programs()}
    if arguments.json:
        print(json.dumps({"mb_per_s": rates}))
        return
    for name, value in rates.items():
        print(f"{value:10.1f} MB/s  {name}")


if __name__ == "__main__":
    main()
