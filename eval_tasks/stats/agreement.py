"""Labels of the same outputs by several raters -> how far they agree, as a share and beyond chance.

Cohen's kappa with the large-sample error of Fleiss, Cohen and Everitt 1969, and Fleiss' kappa (1971), are statsmodels'.
Labels are categories: equal or not, never near. Knows no grader and no store.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eval_tasks.records.agreement import Agreement
from eval_tasks.stats.influence import FloatArray, is_zero
from eval_tasks.stats.intervals import Interval, t_interval, wilson

ONE_CATEGORY = "kappa is not defined: every label is the same, so that chance alone would agree as far"
_TOO_FEW = "kappa is not defined on fewer than 2 outputs"
_NO_SPREAD = "no interval: the counts leave kappa no spread, as where one rater gives every output the same label"
_FIXED_CHANCE = "full agreement has no spread: Wilson's interval of the agreement, with chance agreement held fixed"
_NO_JACKKNIFE = "Fleiss' kappa; no interval: leaving an output out changes nothing, or leaves one label alone"
_JACKKNIFE = "Fleiss' kappa; interval by jackknife over outputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyRaters:
    """More than two raters of the same `n` outputs: Fleiss' kappa, None where `note` says why, and its interval."""

    n: int
    n_raters: int
    kappa: float | None
    ci95: Interval | None
    note: str = ""


def agreement(a: FloatArray, b: FloatArray) -> Agreement:
    """Agreement of two raters on the same outputs; shape (n,) each, n >= 0, finite."""
    n = len(a)
    n_agree = int(np.count_nonzero(a == b))
    kappa, ci, note = _cohen(a, b, n_agree)
    return Agreement(
        n=n,
        n_agree=n_agree,
        agreement=n_agree / n if n else None,
        ci95=wilson(n_agree, n),
        kappa=kappa,
        kappa_ci95=ci,
        kappa_note=note,
    )


def _cohen(a: FloatArray, b: FloatArray, n_agree: int) -> tuple[float | None, Interval | None, str]:
    n = len(a)
    if n < 2:
        return None, None, _TOO_FEW
    labels, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(labels) < 2:
        return None, None, ONE_CATEGORY
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, (codes[:n], codes[n:]), 1)
    from statsmodels.stats.inter_rater import cohens_kappa  # a second to load

    with np.errstate(invalid="ignore", divide="ignore"):  # its test of kappa = 0 divides by an error that may be 0
        found = cohens_kappa(table)
    kappa, se = float(found.kappa), float(np.sqrt(max(found.var_kappa, 0.0)))
    if not is_zero(se, 1.0):
        half = 1.959963984540054 * se
        return kappa, (max(-1.0, kappa - half), min(1.0, kappa + half)), ""
    interval = wilson(n_agree, n)
    chance = float((table.sum(0) @ table.sum(1)) / n**2)
    if interval is None or n_agree < n:
        return kappa, None, _NO_SPREAD
    return kappa, ((interval[0] - chance) / (1 - chance), 1.0), _FIXED_CHANCE


def many_raters(labels: FloatArray) -> ManyRaters:
    """Fleiss' kappa of `labels`, shape (outputs, raters >= 2), on the outputs that every rater labelled (no NaN)."""
    whole = labels[~np.isnan(labels).any(axis=1)]
    n, n_raters = whole.shape
    if n < 2:
        return ManyRaters(n=n, n_raters=n_raters, kappa=None, ci95=None, note=f"{n} outputs were labelled by all")
    values = np.unique(whole)
    if len(values) < 2:
        return ManyRaters(n=n, n_raters=n_raters, kappa=None, ci95=None, note=ONE_CATEGORY)
    counts = np.stack([(whole == value).sum(axis=1) for value in values], axis=1)
    kappa = _fleiss(counts)
    if kappa is None:
        return ManyRaters(n=n, n_raters=n_raters, kappa=None, ci95=None, note=ONE_CATEGORY)
    interval = _jackknife(counts)
    note = _JACKKNIFE if interval else _NO_JACKKNIFE
    return ManyRaters(n=n, n_raters=n_raters, kappa=kappa, ci95=interval, note=note)


def _fleiss(counts: npt.NDArray[np.int64]) -> float | None:
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return None
    from statsmodels.stats.inter_rater import fleiss_kappa

    return float(fleiss_kappa(counts))


def _jackknife(counts: npt.NDArray[np.int64]) -> Interval | None:
    """Outputs with the same counts leave the same kappa behind: one evaluation for each pattern."""
    n = len(counts)
    whole = _fleiss(counts)
    patterns, first, times = np.unique(counts, axis=0, return_index=True, return_counts=True)
    left = [_fleiss(np.delete(counts, row, axis=0)) for row in first]
    if whole is None or any(value is None for value in left):
        return None
    values = np.array(left, dtype=np.float64)
    mean = float(np.average(values, weights=times))
    se = float(np.sqrt((n - 1) / n * np.sum(times * (values - mean) ** 2)))
    if len(patterns) < 2 or is_zero(se, 1.0):
        return None
    interval = t_interval(whole, se, n - 1)
    return None if interval is None else (max(-1.0, interval[0]), min(1.0, interval[1]))


def majority(labels: FloatArray) -> FloatArray:
    """The label most raters gave each output, shape (outputs,); NaN where raters are evenly divided, or none spoke.

    labels: shape (outputs, raters), NaN where a rater gave none.
    """
    values = np.unique(labels[~np.isnan(labels)])
    if len(values) == 0:
        return np.full(len(labels), np.nan)
    votes = np.stack([(labels == value).sum(axis=1) for value in values], axis=1)
    most = votes.max(axis=1)
    decided = (most > 0) & ((votes == most[:, None]).sum(axis=1) == 1)
    return np.where(decided, values[votes.argmax(axis=1)], np.nan)
