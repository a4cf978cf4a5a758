"""Equations 1 to 3, the band, and the paper's own numbers."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import formulas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rewards.algebra import as_decimal, as_float, penalised_tenths, planning_tenths, stage_tenths, step_tenths
from services.rewards.band import pass_rate


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [(1, -1, "0.5"), (1, 1, "1.5"), (-1, 1, "-0.8"), (-1, -1, "-1.2"), (1, None, "1.0"), (-1, None, "-1.0")],
)
def test_stage_rewards_of_section_2_4(alpha: int, beta: int | None, expected: str) -> None:
    assert as_decimal(stage_tenths(alpha, beta)) == Decimal(expected)
    assert repr(as_float(stage_tenths(alpha, beta))) == expected


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [(1, 1, -10), (1, -1, -10), (-1, 1, -10), (-1, -1, -12), (1, None, -10), (-1, None, -10)],
)
def test_a_penalty_caps_the_reward_at_minus_one(alpha: int, beta: int | None, expected: int) -> None:
    assert step_tenths(alpha, beta, -1, in_band=True) == expected


@pytest.mark.parametrize(
    ("checkpoint", "alpha", "betas", "expected"),
    [
        # Figures 6 to 9 of Appendix J, the stages in the order in which the figures list them.
        ("base", -1, [-1, 1, -1, -1, 1, -1, -1, -1], [-12, -8, -12, -12, -8, -12, -12, -12]),
        ("step 40", -1, [1, -1, 1, -1, 1, 1, -1], [-8, -12, -8, -12, -8, -8, -12]),
        ("step 80", -1, [-1, 1, 1, 1, 1, 1], [-12, -8, -8, -8, -8, -8]),
        ("step 120", 1, [1, 1, 1, 1, 1], [15, 15, 15, 15, 15]),
    ],
)
def test_step_rewards_of_appendix_j(checkpoint: str, alpha: int, betas: list[int], expected: list[int]) -> None:
    # The verifier of a group of one: p is 0 for the failures and 1 for the success, both in the band.
    in_band = pass_rate([alpha]).in_process_band
    assert [step_tenths(alpha, beta, 0, in_band=in_band) for beta in betas] == expected, checkpoint


def test_equal_to_the_transcription_on_the_whole_domain() -> None:
    for alpha, beta, gamma, p in itertools.product(
        (-1, 1), (-1, 1, None), (-1, 0), (Fraction(0), Fraction(1, 2), Fraction(3, 4), Fraction(1))
    ):
        step = formulas.PlainStep(0, beta, gamma)
        tenths = step_tenths(alpha, beta, gamma, in_band=formulas.banded(p))
        assert Fraction(tenths, 10) == formulas.r(alpha, step, p)


def test_outside_the_band_gamma_and_beta_are_ignored() -> None:
    for alpha, beta, gamma in itertools.product((-1, 1), (-1, 1, None), (-1, 0)):
        assert step_tenths(alpha, beta, gamma, in_band=False) == planning_tenths(alpha) == 10 * alpha


@pytest.mark.parametrize("value", [0, 2, -2, 10])
def test_values_outside_the_domain_are_named(value: int) -> None:
    with pytest.raises(ValueError, match=f"alpha must be -1 or 1, not {value}"):
        stage_tenths(value, 1)
    with pytest.raises(ValueError, match=f"alpha must be -1 or 1, not {value}"):
        planning_tenths(value)
    with pytest.raises(ValueError, match=f"beta must be -1 or 1, not {value}"):
        stage_tenths(1, value)


@pytest.mark.parametrize("gamma", [1, -2, 5])
def test_another_gamma_is_refused_even_outside_the_band(gamma: int) -> None:
    with pytest.raises(ValueError, match="gamma must be -1 or 0"):
        penalised_tenths(5, gamma)
    with pytest.raises(ValueError, match="gamma must be -1 or 0"):
        step_tenths(1, 1, gamma, in_band=False)


@pytest.mark.parametrize(
    ("passed", "known", "inside"),
    [
        (0, 1, True),
        (0, 32, True),
        (1, 32, False),
        (23, 32, False),
        (24, 32, True),
        (32, 32, True),
        (2, 3, False),
        (3, 4, True),
        (74, 99, False),
        (75, 100, True),
        (749_999_999, 1_000_000_000, False),
        (750_000_000, 1_000_000_000, True),
    ],
)
def test_the_band_is_zero_or_at_least_three_quarters(passed: int, known: int, inside: bool) -> None:
    from services.rewards.band import PassRate

    assert PassRate(passed, known).in_process_band is inside


def test_unknown_outcomes_stay_out_of_the_pass_rate() -> None:
    rate = pass_rate([1, None, 1, 1, -1, None])
    assert (rate.passed, rate.known, rate.value) == (3, 4, Fraction(3, 4))
    assert rate.in_process_band


def test_a_group_without_a_known_outcome_has_no_pass_rate() -> None:
    rate = pass_rate([None, None])
    assert rate.value is None
    assert not rate.in_process_band


def test_a_wrong_outcome_in_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        pass_rate([1, 0])


@given(st.lists(st.sampled_from([-1, 1, None]), max_size=70))
def test_band_equals_the_transcription(alphas: list[int | None]) -> None:
    group = [formulas.PlainRollout(alpha) for alpha in alphas]
    assert pass_rate(alphas).in_process_band == formulas.banded(formulas.rate(group))
