"""Checkpoints evaluated twice, as the catalog has them -> what engine and environments do to a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.compare.compared import Compared
from eval_tasks.compare.noise import Instrument
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.sentence import amount
from eval_tasks.records import RerunComparison, RerunDifference, VarianceTerm
from eval_tasks.records.variance import Standing
from eval_tasks.stats.recipes import Added, CommonVariance

if TYPE_CHECKING:
    from eval_tasks.store import Store


def instruments_of(store: Store, compared: Compared) -> dict[str, Instrument]:
    """The engine's part where all runs ran in one environment, else the environments'."""
    prints_a, prints_b = ({run.env_fingerprint for run in arm} for arm in (compared.a, compared.b))
    if None in prints_a | prints_b:
        return {arm.benchmark: _no_engine("a run has no fingerprint") for arm in compared.arms}
    pairs = sorted({(str(x), str(y)) for x in prints_a for y in prints_b})
    if len(pairs) == 1 and pairs[0][0] == pairs[0][1]:
        reruns = store.catalog.reruns(pairs[0])
        return {arm.benchmark: _engine(arm, reruns) for arm in compared.arms}
    by_pair = [(pair, store.catalog.reruns(pair)) for pair in pairs if pair[0] != pair[1]]
    return {arm.benchmark: _environments(arm, by_pair) for arm in compared.arms}


def _engine(arm: BenchmarkArms, reruns: Sequence[RerunComparison]) -> Instrument:
    found = _rerun_variance(arm, reruns)
    if found is None:
        what = f" has a metric in {arm.info.unit}" if reruns else ""
        return _no_engine(f"no rerun in this environment{what}")
    added, standing, origin = found
    term = VarianceTerm(source="engine", standing=standing, sd=added.sd, origin=origin)
    return Instrument(term=term, added=added if added.sd > 0 else None)


def _no_engine(why: str) -> Instrument:
    return Instrument(term=VarianceTerm(source="engine", standing="not measured", sd=None, origin=why))


def _environments(
    arm: BenchmarkArms, by_pair: Sequence[tuple[tuple[str, str], Sequence[RerunComparison]]]
) -> Instrument:
    """The largest of the pairs of environments that the arms ran in; not measured where one of them is not."""
    found = [(pair, _rerun_variance(arm, reruns)) for pair, reruns in by_pair]
    unknown = [pair for pair, variance in found if variance is None]
    if unknown:
        origin = f"no checkpoint was evaluated in both {unknown[0][0][:12]} and {unknown[0][1][:12]}"
        note = "cross-environment: the runs ran in different environments, whose effect is not measured and not in the "
        return Instrument(
            term=VarianceTerm(source="environment", standing="not measured", sd=None, origin=origin),
            note=f"{note}interval",
        )
    added, standing, origin = max((v for _, v in found if v is not None), key=lambda v: v[0].sd)
    effect = amount(added.sd, arm.info.unit)
    note = f"cross-environment: the environments' measured effect (SD {effect}) is in p and interval"
    term = VarianceTerm(source="environment", standing=standing, sd=added.sd, origin=origin)
    return Instrument(term=term, added=added if added.sd > 0 else None, note=note)


def _rerun_variance(arm: BenchmarkArms, reruns: Sequence[RerunComparison]) -> tuple[Added, Standing, str] | None:
    """``max(0, mean(D^2) - mean(SE_flip^2))`` over the metrics of one unit; None where none was rerun.

    A checkpoint's benchmark counts once, by its last rerun and one metric, the compared one where it has it: rerunning
    the same tells nothing new, and metrics of the same answers hardly more than one of them.
    """
    latest: dict[tuple[str, str], tuple[RerunComparison, RerunDifference]] = {}
    for rerun in reruns:
        seen: set[str] = set()
        for d in rerun.differences:
            asked = (d.benchmark, d.metric) == (arm.benchmark, arm.metric)
            if d.unit == arm.info.unit and (d.benchmark not in seen or asked):
                latest[rerun.checkpoint_id or rerun.rerun_id, d.benchmark] = (rerun, d)
                seen.add(d.benchmark)
    if not latest:
        return None
    squares = [d.delta**2 for _, d in latest.values()]
    flips = [d.se_flip**2 for _, d in latest.values()]
    n = len(squares)
    variance = CommonVariance(total=sum(squares) / n, flips=sum(flips) / n, df=n)
    here = any((d.benchmark, d.metric) == (arm.benchmark, arm.metric) for _, d in latest.values())
    last = max(rerun.measured_at for rerun, _ in latest.values())
    what = ", every score equal" if not any(squares) else ""
    others = "" if here else ", none of them this one"
    origin = f"{n} rerun scores{others}, last on {last[:10]}{what}"
    return Added(variance=variance), "measured" if here else "prior", origin
