from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from services.contracts.outcomes import Profile, Reason
from services.proofs import policy
from services.proofs.precheck import precheck

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")


class Rule(NamedTuple):
    rule: str
    reason: str
    profile: str
    rejected: str
    accepted: str


def _code(cell: str) -> str:
    mark = "``" if cell.startswith("``") else "`"
    text = cell.removeprefix(mark).removesuffix(mark).strip(" ")
    return text.replace("\\|", "|").replace("⏎", "\n").replace("␀", "\0")


def _rules() -> list[Rule]:
    rows = re.findall(r"^\| (.+) \| `(\w+)` \| (both|strict) \| (.+) \| (.+) \|$", DOCUMENT, re.MULTILINE)
    return [Rule(rule, reason, profile, _code(bad), _code(good)) for rule, reason, profile, bad, good in rows]


RULES = _rules()


def test_the_document_has_every_rule() -> None:
    assert len(RULES) >= 35
    assert {Reason(rule.reason) for rule in RULES} == {
        Reason.NO_THEOREM,
        Reason.COMPILE_ERROR,
        Reason.FORBIDDEN_CONSTRUCT,
        Reason.HEADER_MISMATCH,
        Reason.MISPLACED_IMPORT,
    }
    assert all("`" not in rule.rejected.replace("`(", "") for rule in RULES), "Markdown's quotes do not reach the code"
    assert all(f"`{word}`" in DOCUMENT for word in policy.FORBIDDEN_WORDS[Profile.PAPER])


@pytest.mark.parametrize("rule", RULES, ids=[rule.rule for rule in RULES])
def test_rejected_example(rule: Rule) -> None:
    found = precheck(rule.rejected, "", Profile.STRICT)
    assert found is not None
    assert found.reason.value == rule.reason
    paper = precheck(rule.rejected, "", Profile.PAPER)
    assert (paper.reason.value if paper else "accepted") == (rule.reason if rule.profile == "both" else "accepted")


@pytest.mark.parametrize("rule", RULES, ids=[rule.rule for rule in RULES])
@pytest.mark.parametrize("profile", list(Profile))
def test_accepted_example(rule: Rule, profile: Profile) -> None:
    assert precheck(rule.accepted, "", profile) is None
