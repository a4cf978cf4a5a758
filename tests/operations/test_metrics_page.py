"""`docs/metrics.md` says what the code defines, and its lists of label values are those of the code."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum

import pytest
from prometheus_client.metrics import MetricWrapperBase

from lean_worker.sandbox import Tier
from services.contracts.evaluator import EvaluationMethod
from services.contracts.outcomes import LeanStatus, Reason, Source, Verdict
from services.contracts.problems import ProblemCode
from services.contracts.proofs import CutoffReason, Degradation, Mode
from services.contracts.trajectories import BetaSource, RolloutFlag
from services.contracts.votes import Downgrade
from services.process.penalties.evidence import NAMES
from services.runtime import metrics
from tests.operations.documented_metrics import ROOT, documented, label_values


def defined() -> dict[str, MetricWrapperBase]:
    return {value._name: value for value in vars(metrics).values() if isinstance(value, MetricWrapperBase)}


def test_every_metric_is_documented_and_every_documented_metric_exists() -> None:
    assert sorted(documented()) == sorted(defined())


@pytest.mark.parametrize("name", sorted(defined()))
def test_kind_labels_and_meaning_are_those_of_the_code(name: str) -> None:
    metric, page = defined()[name], documented()[name]
    assert page.kind == metric._type
    assert tuple(page.labels) == tuple(metric._labelnames)
    assert page.meaning.startswith(metric._documentation.rstrip(".")), page.meaning


def test_every_label_has_its_list_of_values() -> None:
    used = {values for metric in documented().values() for values in metric.labels.values()}
    assert used == set(label_values())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mode", Mode),
        ("cutoff", CutoffReason),
        ("source", Source),
        ("verdict", Verdict),
        ("lean_status", LeanStatus),
        ("method", EvaluationMethod),
        ("flag", RolloutFlag),
        ("part", Degradation),
    ],
)
def test_listed_values_are_the_words_of_the_contract(name: str, words: type[Enum]) -> None:
    assert label_values()[name] == {word.value for word in words}


def test_listed_downgrades_are_those_of_the_contract_and_a_failed_judge() -> None:
    assert label_values()["downgrade"] == {word.value for word in Downgrade} | {"judge_failed"}


def test_listed_prompts_and_sources_of_beta_are_those_of_the_code() -> None:
    prompts = {path.name.partition(".")[0] for path in (ROOT / "services" / "process" / "prompts").glob("*.md")}
    assert label_values()["prompt"] == prompts
    assert label_values()["beta_source"] == {word.value for word in BetaSource} | {"nobody"}


def test_listed_rules_and_tiers_are_those_of_the_code() -> None:
    assert label_values()["rule"] == set(NAMES.values())
    assert label_values()["tier"] == {tier.value for tier in Tier} | {"wasm"}


def from_the_start() -> dict[str, list[list[str]]]:
    """The label values of each metric in a new process: here, other tests have counted already."""
    program = """
import json
from services.runtime import metrics

labelled = [m for m in vars(metrics).values() if getattr(m, "_labelnames", ())]
print(json.dumps({m._name: list(m._metrics) for m in labelled}))
"""
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    children: dict[str, list[list[str]]] = json.loads(shown.stdout)
    return children


def test_values_that_are_there_from_the_start_are_listed_ones() -> None:
    elsewhere = {"reason": {r.value for r in Reason}, "code": {c.value for c in ProblemCode}}
    children = from_the_start()
    assert children["lean_reward_engine_restarts"]
    for name, rows in children.items():
        for row in rows:
            for label, value in zip(defined()[name]._labelnames, row, strict=True):
                kind = documented()[name].labels[label]
                values = label_values()[kind] or elsewhere.get(kind)  # None: a number, such as that of a slot
                assert values is None or value in values, f"{name} {label}={value}"
