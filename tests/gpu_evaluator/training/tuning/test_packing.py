"""Packs hold every example once and never too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.training.tuning.packing import pack, windows


@given(lengths=st.lists(st.integers(1, 64), max_size=60), seed=st.integers(0, 5))
def test_every_example_is_in_one_pack_and_no_pack_is_too_long(lengths: list[int], seed: int) -> None:
    packs = pack(lengths, 64, seed)
    assert sorted(index for one in packs for index in one) == list(range(len(lengths)))
    assert all(sum(lengths[index] for index in one) <= 64 for one in packs)
    assert packs == pack(lengths, 64, seed)


@given(lengths=st.lists(st.integers(1, 64), min_size=1, max_size=60))
def test_at_most_one_pack_is_not_half_full(lengths: list[int]) -> None:
    rooms = [sum(lengths[index] for index in one) for one in pack(lengths, 64, 0)]
    assert sum(2 * room <= 64 for room in rooms) <= 1


def test_examples_of_the_papers_lengths_fill_the_packs() -> None:
    lengths = np.random.default_rng(1).lognormal(6.5, 0.7, 20_000).astype(int).clip(1, 32_768)
    packs = pack(lengths, 32_768, 42)
    assert lengths.sum() / (len(packs) * 32_768) > 0.98


@pytest.mark.parametrize("lengths", [[65], [0]])
def test_what_cannot_be_packed_is_an_error(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="do not all fit"):
        pack(lengths, 64, 0)


@given(length=st.integers(0, 200), limit=st.integers(1, 50))
def test_windows_cover_a_text_without_overlap(length: int, limit: int) -> None:
    parts = list(windows(length, limit))
    assert [n for start, end in parts for n in range(start, end)] == list(range(length))
    assert all(0 < end - start <= limit for start, end in parts)
