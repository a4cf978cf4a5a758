"""Kimina's own client, unmodified, against a live server."""

from __future__ import annotations

import logging
import sys
import typing
from collections import Counter
from types import ModuleType, SimpleNamespace

import pytest
import typing_extensions
from live import RIGHT, STATEMENT, WRONG, Trouble

if sys.version_info < (3, 12):  # pydantic refuses the older TypedDict, which the client's models are made of
    typing.TypedDict = typing_extensions.TypedDict

from kimina_client import AsyncKiminaClient, CheckResponse, KiminaClient, Snippet
from kimina_client.models import Infotree, SnippetStatus
from live import URL

CODES = {
    "right": f"{STATEMENT} := by omega",
    "wrong": f"\n\n{STATEMENT} := by rfl",
    "sorry": f"{STATEMENT} := by sorry",
    "silent": f"{STATEMENT} := sorryAx _ true",
    "endless": "set_option maxHeartbeats 0 in\nset_option maxRecDepth 1000000 in\n"
    "theorem e : (List.range 20000000).length = 20000000 := by decide",
}
STATUSES = {
    "right": SnippetStatus.valid,
    "wrong": SnippetStatus.lean_error,
    "sorry": SnippetStatus.sorry,
    "silent": SnippetStatus.sorry,
}


def by_id(answer: CheckResponse) -> dict[str, SnippetStatus]:
    return {result.id: result.analyze().status for result in answer.results}


def snippets(*names: str) -> list[Snippet]:
    return [Snippet(id=name, code=CODES[name]) for name in names]


def test_its_own_self_test_passes() -> None:
    client = KiminaClient(api_url=URL)
    assert client.health() == {"status": "ok"}
    client.test()


async def test_its_asynchronous_self_test_passes() -> None:
    await AsyncKiminaClient(api_url=URL).test()


def test_every_snippet_gets_its_status() -> None:
    answer = KiminaClient(api_url=URL).check(snippets(*STATUSES), show_progress=False, debug=True)
    assert by_id(answer) == STATUSES


async def test_the_asynchronous_client_too() -> None:
    answer = await AsyncKiminaClient(api_url=URL).check(snippets(*STATUSES), show_progress=False)
    assert by_id(answer) == STATUSES


def test_positions_count_in_the_snippet() -> None:
    code = f"import Init\n-- a comment\n\n{STATEMENT} := by\n  rfl"
    (result,) = KiminaClient(api_url=URL).check(Snippet(id="p", code=code), show_progress=False).results
    assert result.response is not None
    (error,) = [m for m in result.response["messages"] if m["severity"] == "error"]
    assert error["pos"]["line"] == 5


def test_a_timeout_is_one_for_its_snippet_alone() -> None:
    client = KiminaClient(api_url=URL)
    answer = client.check(snippets("endless", "right"), timeout=3, show_progress=False)
    assert by_id(answer) == {"endless": SnippetStatus.timeout_error, "right": SnippetStatus.valid}


def test_an_unknown_import_is_an_error_of_the_snippet() -> None:
    (result,) = KiminaClient(api_url=URL).check("import NoSuchModule\n#check Nat", show_progress=False).results
    assert result.analyze().status in (SnippetStatus.repl_error, SnippetStatus.lean_error)


def test_infotrees_hold_the_tactics() -> None:
    (result,) = (
        KiminaClient(api_url=URL).check(snippets("right"), infotree=Infotree.original, show_progress=False).results
    )
    assert result.response is not None
    (tree,) = result.response["infotree"]
    assert tree["node"]["stx"]["pp"] == "omega"


def test_no_state_is_carried_from_one_snippet_to_the_next() -> None:
    client = KiminaClient(api_url=URL)
    client.check("def left_behind := 1", show_progress=False)
    (result,) = client.check("#check left_behind", show_progress=False).results
    assert result.analyze().status is SnippetStatus.lean_error


def test_its_benchmark_runs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """`run_benchmark` reads a data set of the Hugging Face hub; in its place stands one of our own."""
    kinds = ["right", "wrong", "sorry", "right"]
    rows = [{"problem_id": i, "full_proof": f"-- {i}\n{CODES[kinds[i % len(kinds)]]}"} for i in range(64)]
    features = SimpleNamespace(info=SimpleNamespace(features={"problem_id": None, "full_proof": None}))
    stand_in = ModuleType("datasets")
    stand_in.load_dataset = lambda name, split: rows
    stand_in.load_dataset_builder = lambda name: features
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    seen: list[CheckResponse] = []
    analyze = CheckResponse.analyze
    monkeypatch.setattr(CheckResponse, "analyze", lambda self, s: (seen.append(self), analyze(self, s)))
    with caplog.at_level(logging.INFO, logger="kimina-client"):
        KiminaClient(api_url=URL).run_benchmark(n=64, show_progress=False)
    (answer,) = seen
    counted = Counter(result.analyze().status for result in answer.results)
    assert counted == {SnippetStatus.valid: 32, SnippetStatus.lean_error: 16, SnippetStatus.sorry: 16}


def test_its_retries_live_through_a_restart_and_an_overload() -> None:
    trouble = Trouble()
    client = KiminaClient(api_url=trouble.url, n_retries=5)
    with trouble.down_for(1.5):
        answer = client.check(snippets("right", "wrong"), show_progress=False)
    assert by_id(answer) == {"right": SnippetStatus.valid, "wrong": SnippetStatus.lean_error}
    trouble.overloads = 1
    trouble.delay_s = 1.0
    assert by_id(client.check(snippets("right"), show_progress=False)) == {"right": SnippetStatus.valid}
    trouble.stop()


def test_the_responses_of_the_other_contract_tests_are_what_they_say() -> None:
    codes = [text.split("```lean\n")[1].split("\n```")[0] for text in (RIGHT, WRONG)]
    answer = KiminaClient(api_url=URL).check(codes, show_progress=False)
    assert [result.analyze().status for result in answer.results] == [SnippetStatus.valid, SnippetStatus.lean_error]
