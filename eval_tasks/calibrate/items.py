"""What was fitted and found of each item -> its record, with flags and the wrong answer that runs agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.records import BenchmarkVersion, CalibratedItem, Run
from eval_tasks.records.item_response import ItemFlag
from eval_tasks.stats.item_analysis import EXTREME, ItemAnalysis
from eval_tasks.stats.item_response import BoolArray, Calibration2PL

if TYPE_CHECKING:
    from eval_tasks.store import Store

FLAGS: tuple[ItemFlag, ...] = ("negative_discrimination", "below_chance", "too_hard", "too_easy")
"""Likeliest mislabelled first."""

DECIMALS = 6
"""Weights are frozen as they are rounded here."""

_LEVEL = 0.05


def item_records(
    item_ids: Sequence[str],
    seen: BoolArray,
    fitted: tuple[Calibration2PL, npt.NDArray[np.intp]],
    analysis: ItemAnalysis,
    chance: float | None,
    runs_per_group: float,
) -> list[CalibratedItem]:
    """Records of all items by id. Errors are those of independent runs, widened to one observation a training run."""
    fit, calibrated = fitted
    place = {int(j): k for k, j in enumerate(calibrated)}
    widened = float(np.sqrt(runs_per_group))
    n_runs = seen.sum(axis=0)
    records = []
    for j, item_id in enumerate(item_ids):
        share, low, high = (_number(x[j]) for x in (analysis.share, analysis.share_low, analysis.share_high))
        link_ends = _number(analysis.link_low[j]), _number(analysis.link_high[j])
        q, chance_q = _number(analysis.q[j]), _number(analysis.chance_q[j])
        records.append(
            CalibratedItem(
                item_id=item_id,
                n_runs=int(n_runs[j]),
                n_groups=int(analysis.n_groups[j]),
                share=share,
                share_ci95=None if low is None or high is None else (low, high),
                link=_number(analysis.link[j]),
                link_ci95=None if link_ends[0] is None or link_ends[1] is None else (link_ends[0], link_ends[1]),
                q=q,
                chance_q=chance_q,
                flags=_flags(
                    (_number(analysis.link[j]), link_ends[0]), (q, chance_q), (share, low, high), chance or 0.0
                ),
                **(_parameters(fit, place[j], widened) if j in place else {}),
            )
        )
    return records


def with_common_wrong(
    store: Store,
    benchmark: BenchmarkVersion,
    runs: Sequence[Run],
    scored: tuple[str, str],
    items: Sequence[CalibratedItem],
) -> list[CalibratedItem]:
    """Items, those in question with the wrong answer that most runs gave: agreement there speaks against the gold."""
    grader, metric = scored
    wanted = {i.item_id: Counter[str]() for i in items if set(i.flags) - {"too_easy"}}
    if not wanted:
        return list(items)
    ids = pa.array(sorted(wanted))
    for run in runs:
        rows = store.scores.read(
            run.run_id, benchmark.benchmark_id, grader=grader, metric=metric, columns=("item_id", "value", "extracted")
        )
        wrong = pc.and_(pc.equal(rows["value"], 0.0), pc.is_in(rows["item_id"], value_set=ids))
        chosen = rows.filter(pc.and_(wrong, pc.is_valid(rows["extracted"])))
        for item_id, answer in zip(chosen["item_id"].to_pylist(), chosen["extracted"].to_pylist(), strict=True):
            wanted[item_id][answer] += 1
    return [_agreed(item, wanted.get(item.item_id)) for item in items]


def _parameters(fit: Calibration2PL, k: int, widened: float) -> Mapping[str, Any]:
    a, c = float(fit.discrimination[k]), float(fit.intercept[k])
    se_a, se_c = widened * float(fit.discrimination_se[k]), widened * float(fit.intercept_se[k])
    found = {
        "discrimination": round(a, DECIMALS),
        "discrimination_se": round(se_a, DECIMALS),
        "intercept": round(c, DECIMALS),
        "intercept_se": round(se_c, DECIMALS),
    }
    # Where the curve is flat it crosses one half nowhere, or anywhere.
    if a > 2 * se_a:
        b = -c / a
        variance = (b * b * se_a**2 + se_c**2 + 2 * b * widened**2 * float(fit.covariance[k])) / a**2
        found |= {"difficulty": round(b, DECIMALS), "difficulty_se": round(float(np.sqrt(variance)), DECIMALS)}
    return found


def _flags(
    links: tuple[float | None, float | None],
    adjusted: tuple[float | None, float | None],
    share: tuple[float | None, float | None, float | None],
    chance: float,
) -> tuple[ItemFlag, ...]:
    """`links`: with ability, and its lower end; `adjusted`: q of the link and of chance.

    An item that few (or nearly all) have right is no trouble while it is the abler ones who have it right.
    """
    (link, lowest), (q, chance_q), (mean, low, high) = links, adjusted, share
    telling = lowest is not None and lowest > 0
    known = chance + EXTREME * (1 - chance)
    found = {
        "negative_discrimination": link is not None and link < 0 and q is not None and q <= _LEVEL,
        "below_chance": chance_q is not None and chance_q <= _LEVEL,
        "too_hard": mean == 0 or (high is not None and high < known and not telling),
        "too_easy": mean == 1 or (low is not None and low > 1 - EXTREME and not telling),
    }
    return tuple(flag for flag in FLAGS if found[flag])


def _agreed(item: CalibratedItem, answers: Counter[str] | None) -> CalibratedItem:
    if not answers:
        return item
    answer, n = min(answers.items(), key=lambda entry: (-entry[1], entry[0]))
    return replace(item, common_wrong=answer, n_common_wrong=n)


def _number(value: Any) -> float | None:
    return round(float(value), DECIMALS) if np.isfinite(value) else None
