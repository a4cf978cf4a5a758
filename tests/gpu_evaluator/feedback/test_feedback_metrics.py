from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.feedback.metrics import SourcePreservation, audit_source, average, compare, f1

FIGURES = Path(__file__).parent / "figures"
BLOCK = "/- <feedback>\n{}\n</feedback> -/\n"


def _figure(number: int) -> tuple[str, str]:
    return tuple((FIGURES / f"figure{number}_{who}.txt").read_text(encoding="utf-8") for who in ("lean", "model"))  # type: ignore[return-value]


@pytest.mark.parametrize(("figure", "expected"), [(3, (0.667, 0.667, 0.929, 1)), (4, (0.667, 0.667, 0.745, 0))])
def test_the_papers_complete_pairs_score_as_printed(figure: int, expected: tuple[float, ...]) -> None:
    quality = compare(*_figure(figure))
    got = (quality.block_f1, quality.anchored_block_f1, quality.token_f1, quality.error_agreement)
    assert tuple(round(value, 3) for value in got) == expected


def test_two_traces_without_blocks_agree_and_one_sided_ones_do_not() -> None:
    assert compare("theorem t : True := trivial", "theorem t : True := trivial").block_f1 == 1.0
    one_sided = compare("a\n" + BLOCK.format("-- proof state:\n⊢ p"), "a\n")
    assert (one_sided.block_f1, one_sided.anchored_block_f1, one_sided.token_f1) == (0.0, 0.0, 0.0)


def test_a_block_at_another_line_matches_unanchored_only() -> None:
    block = BLOCK.format("⊢ p")
    quality = compare("a\n" + block + "b\n", "a\nb\n" + block)
    assert (quality.block_f1, quality.anchored_block_f1) == (1.0, 0.0)


def test_blank_lines_and_earlier_blocks_do_not_move_an_anchor() -> None:
    block = BLOCK.format("⊢ p")
    assert compare("a\n" + block + "b\n" + block, "a\n\n" + block + "\n\nb\n" + block).anchored_block_f1 == 1.0


def test_an_unclosed_block_is_no_block_but_its_error_marker_counts() -> None:
    quality = compare("a\n" + BLOCK.format("-- type: error, msg: x"), "a\n/- <feedback>\n--  TYPE : Error")
    assert (quality.block_f1, quality.error_agreement) == (0.0, 1.0)


def test_rows_without_a_reference_are_left_out_of_the_average() -> None:
    quality, scored = average([(None, "x"), ("  \n", "x"), ("a", "a")])
    assert (quality.block_f1, scored) == (1.0, 1)
    with pytest.raises(ValueError, match="no program"):
        average([("", "x")])


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_f1_is_symmetric_bounded_and_the_harmonic_mean(reference: list[str], predicted: list[str]) -> None:
    score = f1(Counter(reference), Counter(predicted))
    assert score == f1(Counter(predicted), Counter(reference))
    assert 0 <= score <= 1
    if reference and predicted:
        overlap = sum(min(reference.count(u), predicted.count(u)) for u in "abc")
        precision, recall = overlap / len(predicted), overlap / len(reference)
        mean = 2 * precision * recall / (precision + recall) if overlap else 0.0
        assert score == pytest.approx(mean)


@given(st.text(alphabet="ab \n", max_size=40), st.text(alphabet="ab \n", max_size=40))
def test_a_full_copy_with_blocks_is_full_and_a_cut_one_is_a_prefix(head: str, tail: str) -> None:
    program = head + "\nx\n" + tail + "\ny"
    trace = head + "\nx\n" + BLOCK.format("⊢ p") + tail + "\ny"
    assert audit_source(program, trace) is SourcePreservation.FULL
    assert audit_source(program, head + "\nx\n" + BLOCK.format("⊢ p")) is SourcePreservation.PREFIX
    assert audit_source(program, "z\n" + trace) is SourcePreservation.OTHER


def test_hostile_traces_are_scored_in_linear_work() -> None:
    openings = "/- <feedback> " * 20_000
    assert compare(openings, openings).block_f1 == 1.0
    assert compare("</feedback> -/" * 20_000, "/-" + " " * 200_000).block_f1 == 1.0
