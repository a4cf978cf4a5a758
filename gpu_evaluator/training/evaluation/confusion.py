"""The confusion matrix and the measures that follow from it (learning-lean-feedback, Section 5.1 and equation 12).

Every function works on arrays of any shape at once, so that a bootstrap is one call. A rate whose denominator is empty
is NaN. F1 and MCC are 0 where their denominators are, as in scikit-learn with both classes given: neither says more
than that nothing was found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Counts(NamedTuple):
    """Programs by prediction and truth, valid being the positive class. Arrays of one shape."""

    true_positive: Numbers
    false_positive: Numbers
    true_negative: Numbers
    false_negative: Numbers

    @property
    def total(self) -> Numbers:
        return self.true_positive + self.false_positive + self.true_negative + self.false_negative


def cells(valid: Flags, predicted: Flags) -> Numbers:
    """(n, 4) one row a program, with a 1 in its cell, in the order of `Counts`."""
    return np.stack([valid & predicted, ~valid & predicted, ~valid & ~predicted, valid & ~predicted], axis=1).astype(
        float
    )


def count(valid: Flags, predicted: Flags) -> Counts:
    """Count the programs, (n,) each; the counts are scalars of shape ()."""
    return Counts(*cells(valid, predicted).sum(axis=0))


def accuracy(counts: Counts) -> Numbers:
    return _ratio(counts.true_positive + counts.true_negative, counts.total, np.nan)


def recall(counts: Counts) -> Numbers:
    """True-positive rate: the fraction of valid programs that are predicted valid."""
    return _ratio(counts.true_positive, counts.true_positive + counts.false_negative, np.nan)


def false_positive_rate(counts: Counts) -> Numbers:
    return _ratio(counts.false_positive, counts.false_positive + counts.true_negative, np.nan)


def f1(counts: Counts) -> Numbers:
    """Harmonic mean of precision and recall of the valid class."""
    both = 2 * counts.true_positive
    return _ratio(both, both + counts.false_positive + counts.false_negative, 0.0)


def macro_f1(counts: Counts) -> Numbers:
    """Mean of F1 of the valid class and F1 of the invalid class, of both even where one is empty."""
    turned = Counts(counts.true_negative, counts.false_negative, counts.true_positive, counts.false_positive)
    return np.asarray((f1(counts) + f1(turned)) / 2)


def mcc(counts: Counts) -> Numbers:
    """Matthews correlation coefficient; 0 where a row or a column of the matrix is empty."""
    tp, fp, tn, fn = counts
    # Square roots first: the product of four sums of large counts loses digits.
    margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return _ratio(tp * tn - fp * fn, margins, 0.0)


def precision_at(
    prevalence: float, true_positive_rate: Numbers | float, false_positive_rate: Numbers | float
) -> Numbers:
    """Positive predictive value where a fraction `prevalence` of the candidates is valid: equation 12.

    NaN where nothing would be accepted. Raises `ValueError` unless the prevalence lies in [0, 1].
    """
    if not 0 <= prevalence <= 1:
        raise ValueError(f"a prevalence of {prevalence:g}; it lies between 0 and 1")
    right = prevalence * np.asarray(true_positive_rate, dtype=float)
    return _ratio(right, right + (1 - prevalence) * np.asarray(false_positive_rate, dtype=float), np.nan)


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike, otherwise: float) -> Numbers:
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    shape = np.broadcast(part, whole).shape
    return np.asarray(np.divide(part, whole, out=np.full(shape, otherwise), where=whole != 0))
