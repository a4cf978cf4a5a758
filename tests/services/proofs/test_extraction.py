from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lean_text import soup

from services.proofs.extraction import Extraction, Origin, extract_code

PROOF = "theorem t : True := by\n  trivial\n"
OTHER = "theorem other : True := trivial\n"


def lean(code: str, closed: bool = True) -> Extraction:
    return Extraction(code, Origin.LEAN_FENCE, closed)


@pytest.mark.parametrize(
    "opening", ["```lean", "```lean4", "```tactics", "```Lean4", "``` lean4", "```lean4 title=x", "```lean {.numbers}"]
)
def test_a_block_of_a_lean_language_is_code(opening: str) -> None:
    assert extract_code(f"Here it is:\n\n{opening}\n{PROOF}```\nDone.") == lean(PROOF)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(f"```lean\n{OTHER}```\n```lean\n{PROOF}```", lean(PROOF), id="the last block counts"),
        pytest.param(
            f"```lean\n{PROOF}```\n```\nnotes\n```", lean(PROOF), id="a later block without language does not"
        ),
        pytest.param(f"```lean\n{PROOF}```\n```python\nx\n```", lean(PROOF), id="nor one of another language"),
        pytest.param(f"```lean\n{PROOF}```\n```lean\n\n```", lean(PROOF), id="nor a blank one"),
        pytest.param(f"```lean\n{PROOF}", lean(PROOF, closed=False), id="the end closes the last block"),
        pytest.param(f"```lean\n{OTHER}\n```lean\n{PROOF}```", lean(PROOF), id="a new block closes an open one"),
        pytest.param(f"```\nnotes\n```lean\n{PROOF}```", lean(PROOF), id="also one without language"),
        pytest.param(f"~~~lean\n{PROOF}~~~\n", lean(PROOF), id="tildes"),
        pytest.param(
            f"````lean\n/-- ```\nx\n``` -/\n{PROOF}````\n", lean(f"/-- ```\nx\n``` -/\n{PROOF}"), id="longer fence"
        ),
        pytest.param(f"~~~lean\n/--\n```\n-/\n{PROOF}~~~\n", lean(f"/--\n```\n-/\n{PROOF}"), id="other fence inside"),
        pytest.param(
            f"````md\n```lean\n{PROOF}```\n````", Extraction(None, Origin.NONE), id="quoted markdown is no code"
        ),
        pytest.param(f"1. so:\n   ```lean\n   {OTHER}   ```", lean(f"   {OTHER}"), id="indented in a list"),
        pytest.param(f"So: ```lean\n{PROOF}```", lean(PROOF), id="opened at the end of prose"),
        pytest.param(
            "```lean\ntheorem t : True := trivial```\n", lean(OTHER.replace("other", "t")), id="closed behind code"
        ),
        pytest.param(f"```lean\r\n{PROOF}```\r\n", lean(PROOF), id="line ends of the fence"),
        pytest.param(
            f"```leanpkg\n{PROOF}```", Extraction(None, Origin.NONE), id="another language with that beginning"
        ),
        pytest.param(f"```\n{PROOF}```\n", Extraction(PROOF, Origin.PLAIN_FENCE), id="no language at all"),
        pytest.param("```\nsome text\n```\n", Extraction(None, Origin.NONE), id="no language and no theorem"),
        pytest.param("`theorem t : True`", Extraction(None, Origin.NONE), id="inline code"),
        pytest.param("I could not prove it.", Extraction(None, Origin.NONE), id="prose"),
        pytest.param(f"The proof:\n{PROOF}", Extraction(None, Origin.NONE), id="prose before bare code"),
        pytest.param("", Extraction(None, Origin.NONE), id="nothing"),
        pytest.param(PROOF, Extraction(PROOF, Origin.BARE), id="bare code"),
        pytest.param(
            f"-- a\n@[simp] {PROOF}", Extraction(f"-- a\n@[simp] {PROOF}", Origin.BARE), id="bare, with a comment"
        ),
        pytest.param(
            f"import Lean\n{PROOF}", Extraction(f"import Lean\n{PROOF}", Origin.BARE), id="bare, with imports"
        ),
    ],
)
def test_which_code_counts(response: str, expected: Extraction) -> None:
    assert extract_code(response) == expected


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (f"<think>\n```lean\n{OTHER}```\n</think>\n```lean\n{PROOF}```", PROOF),
        (f"<think>\n```lean\n{PROOF}```\n</think>\nI give up.", None),
        (f"<think>\n```lean\n{PROOF}```", None),
        (f"```lean\n{PROOF}```\n<think>```lean\n{OTHER}```", PROOF),
        (f"opened in the prompt ```lean\n{OTHER}```</think>```lean\n{PROOF}```", PROOF),
        (f"opened in the prompt ```lean\n{PROOF}```</think>I give up.", None),
        (f"<think>a</think>```lean\n{PROOF}```<think>```lean\n{OTHER}```</think> Done.", PROOF),
        (f"<Thinking>```lean\n{OTHER}```</thinking>\n{PROOF}", f"\n{PROOF}"),
        (f"<think>an open fence ```lean\n</think>\n{PROOF}", f"\n{PROOF}"),
    ],
)
def test_thoughts_do_not_count(response: str, code: str | None) -> None:
    assert extract_code(response).code == code


@given(soup)
def test_what_is_fenced_comes_back(code: str) -> None:
    code = code.replace("\ud800", "") + "x\n"
    assert extract_code(f"Answer:\n`````lean4\n{code}`````\n") == lean(code)


@given(
    st.lists(st.sampled_from(["```", "~~~", "lean", "\n", "<think>", "</think>", "x", "`", "theorem t "])).map("".join)
)
def test_any_response_is_read(response: str) -> None:
    found = extract_code(response)
    assert (found.code is None) == (found.origin is Origin.NONE)
    assert found.code is None or all(line in response for line in found.code.split("\n"))


@pytest.mark.parametrize("unit", ["```", "```lean", "```\n", "```lean\n", "~", "<think>", "</think>", "`lean ", " `"])
def test_work_grows_in_proportion_to_the_response(
    unit: str, count_calls: Callable[[Callable[[], object]], int]
) -> None:
    small, large = (count_calls(lambda size=size: extract_code(unit * size)) for size in (500, 1_000))
    assert large <= 2 * small + 100
