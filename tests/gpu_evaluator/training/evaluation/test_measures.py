"""Accuracy, F1, MCC, AUROC and precision against direct transcriptions, scikit-learn and the paper's own figures."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from gpu_evaluator.training.evaluation import confusion
from gpu_evaluator.training.evaluation.ranking import Ranking

programs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
scored = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])), min_size=1, max_size=40)


def _split(rows: list[tuple[bool, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


@given(programs)
def test_the_measures_are_those_of_scikit_learn_with_both_classes(rows: list[tuple[bool, bool]]) -> None:
    valid, predicted = _split(rows)
    counts = confusion.count(valid, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of empty classes
        both = {"labels": [False, True], "zero_division": 0}
        assert confusion.accuracy(counts) == pytest.approx(sklearn.accuracy_score(valid, predicted))
        assert confusion.f1(counts) == pytest.approx(sklearn.f1_score(valid, predicted, zero_division=0))
        assert confusion.macro_f1(counts) == pytest.approx(sklearn.f1_score(valid, predicted, average="macro", **both))
        assert confusion.mcc(counts) == pytest.approx(sklearn.matthews_corrcoef(valid, predicted))
        matrix = sklearn.confusion_matrix(valid, predicted, labels=[False, True])
    assert [counts.true_negative, counts.false_positive] == matrix[0].tolist()
    assert [counts.false_negative, counts.true_positive] == matrix[1].tolist()


@given(programs)
def test_rates_are_undefined_without_their_class(rows: list[tuple[bool, bool]]) -> None:
    valid, predicted = _split(rows)
    counts = confusion.count(valid, predicted)
    assert math.isnan(confusion.recall(counts)) == (not valid.any())
    assert math.isnan(confusion.false_positive_rate(counts)) == valid.all()


@given(st.lists(programs, min_size=1, max_size=4))
def test_many_matrices_at_once_are_the_same_as_one_by_one(tables: list[list[tuple[bool, bool]]]) -> None:
    each = [confusion.count(*_split(rows)) for rows in tables]
    together = confusion.Counts(*(np.array(column) for column in zip(*each, strict=True)))
    for measure in (confusion.accuracy, confusion.f1, confusion.macro_f1, confusion.mcc, confusion.recall):
        np.testing.assert_allclose(measure(together), [measure(one) for one in each])


def test_large_counts_do_not_overflow() -> None:
    counts = confusion.Counts(*(np.asarray(count) for count in (4e9, 1e9, 4e9, 1e9)))
    assert confusion.mcc(counts) == pytest.approx(0.6)


@given(scored)
def test_auroc_is_the_share_of_pairs_in_order_with_half_credit_for_ties(rows: list[tuple[bool, float]]) -> None:
    valid, scores = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    pairs = [(p, n) for v, p in rows if v for w, n in rows if not w]
    got = float(Ranking(valid, scores).auroc())
    if not pairs:
        assert math.isnan(got)
        return
    assert got == pytest.approx(sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs))
    assert got == pytest.approx(sklearn.roc_auc_score(valid, scores))
    false_positive, true_positive = Ranking(valid, scores).curve()
    assert sklearn.auc(false_positive, true_positive) == pytest.approx(got)


@given(scored, st.data())
def test_a_weight_counts_a_program_as_often_as_it_says(rows: list[tuple[bool, float]], data: st.DataObject) -> None:
    valid, scores = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    weighted = Ranking(valid, scores).auroc(times[None].astype(float))[0]
    repeated = Ranking(np.repeat(valid, times), np.repeat(scores, times)).auroc()
    np.testing.assert_allclose(weighted, repeated)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    columns = Ranking(valid, scores).auroc(times[None, shuffled].astype(float), np.argsort(shuffled))[0]
    np.testing.assert_allclose(columns, weighted)


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(ValueError, match="without a score"):
        Ranking(np.array([True, False]), np.array([0.5, np.nan]))


@given(programs)
def test_precision_at_the_sets_own_share_of_valid_programs_is_its_precision(rows: list[tuple[bool, bool]]) -> None:
    valid, predicted = _split(rows)
    counts = confusion.count(valid, predicted)
    if valid.all() or not valid.any() or not predicted.any():
        return
    share = float(valid.mean())
    got = confusion.precision_at(share, confusion.recall(counts), confusion.false_positive_rate(counts))
    assert got == pytest.approx(sklearn.precision_score(valid, predicted))


def test_precision_is_undefined_where_nothing_is_accepted_and_prevalence_is_a_fraction() -> None:
    assert math.isnan(confusion.precision_at(0.3, 0.0, 0.0))
    assert confusion.precision_at(1.0, 0.2, 0.9) == 1.0
    assert confusion.precision_at(0.5, 0.8, 0.2) == pytest.approx(0.8)
    with pytest.raises(ValueError, match="between 0 and 1"):
        confusion.precision_at(1.5, 0.5, 0.5)


def test_the_papers_replay_cohort_gives_its_printed_accuracies() -> None:
    # Appendix E: 23,489 candidates, 63.9% valid; (recall, false-positive rate) -> accuracy.
    valid = round(0.639 * 23_489)
    invalid = 23_489 - valid
    for recall, false_positive_rate, accuracy in ((0.899, 0.228, 0.853), (0.851, 0.116, 0.862)):
        counts = confusion.Counts(
            *(
                np.asarray(count)
                for count in (
                    recall * valid,
                    false_positive_rate * invalid,
                    (1 - false_positive_rate) * invalid,
                    (1 - recall) * valid,
                )
            )
        )
        assert confusion.accuracy(counts) == pytest.approx(accuracy, abs=1e-3)


def test_the_papers_cascade_has_its_printed_mcc() -> None:
    # Section 5.1: 68,932 programs, 40.8% valid, recall 0.974, accuracy 0.878 -> MCC 0.772.
    valid = round(0.408 * 68_932)
    right = 0.878 * 68_932
    found = 0.974 * valid
    invalid = 68_932 - valid
    counts = confusion.Counts(
        *(np.asarray(count) for count in (found, invalid - (right - found), right - found, valid - found))
    )
    assert confusion.mcc(counts) == pytest.approx(0.772, abs=2e-3)
