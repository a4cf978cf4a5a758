"""Small programs of every kind, honest and cheating, through the precheck, the embedded Lean and the verdict.

`variants.jsonl` holds one a line: its kind, whether it must be accepted, code and statement. Kinds: what comments and
strings hide, names that look like forbidden words, bytes, import blocks, kinds of declarations, placeholders, other
statements, new meanings for old text, axioms and metaprograms, limits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Profile, Reason, Verdict
from services.proofs.precheck import precheck
from services.proofs.statement import read_statement
from services.proofs.verdict import judge

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

_TEXT = (Path(__file__).parent / "variants.jsonl").read_text(encoding="utf-8")
VARIANTS: list[dict[str, Any]] = [json.loads(line) for line in _TEXT.split("\n") if line]
KINDS = sorted({variant["kind"] for variant in VARIANTS})


async def verdict(engine: EmbeddedEngine, variant: dict[str, Any]) -> tuple[bool, str]:
    """Whether it is accepted, and why (not)."""
    if rejection := precheck(variant["code"], "", Profile.STRICT):
        return False, rejection.detail
    statement = read_statement(variant["statement"]).text
    task = CheckTask(code=variant["code"], statement=statement, timeout_s=60)
    outcome = judge(task, await engine.check(task), repeated=True)
    assert outcome.reason not in (Reason.INFRASTRUCTURE, Reason.LEAN_TIMEOUT, Reason.STATEMENT_INVALID), outcome
    return outcome.verdict is Verdict.VALID, f"{outcome.reason.value}: {outcome.detail}"


@pytest.mark.parametrize("kind", KINDS)
async def test_every_variant_comes_out_right(engine: EmbeddedEngine, kind: str) -> None:
    variants = [variant for variant in VARIANTS if variant["kind"] == kind]
    assert len(variants) >= 5
    wrong = []
    for variant in variants:
        accepted, why = await verdict(engine, variant)
        if accepted is not variant["accept"]:
            wrong.append(f"{variant['code'][:200]!r}: {why}")
    assert not wrong, "\n".join(wrong)
