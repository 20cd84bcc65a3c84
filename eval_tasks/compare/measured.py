"""What the catalog has of noise -> what a comparison of some runs carries: engine, environments, training seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_tasks.compare.noise import Instrument, Noise, SeedNoise, SeedRuns
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.scale import scale_difference, scales_of, words
from eval_tasks.compare.sentence import amount
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import (
    BenchmarkVersion,
    RerunComparison,
    RerunDifference,
    Run,
    Scale,
    SeedStudy,
    StudiedBenchmark,
    VarianceTerm,
)
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.records.variance import Lineage, Standing
from eval_tasks.stats.recipes import Added, CommonVariance, Spread

if TYPE_CHECKING:
    from eval_tasks.store import Store

WAY_OUT = "record one with 'seeds record' or 'seeds import'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What is compared: the runs of each arm, and each shared benchmark's arms and versions (A, B)."""

    a: tuple[Run, ...]
    b: tuple[Run, ...]
    arms: Sequence[BenchmarkArms]
    versions: Mapping[str, tuple[BenchmarkVersion, BenchmarkVersion]]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs."""
        return (*self.a, *self.b)


def lineage_of(compared: Compared) -> Lineage:
    """Whether the two arms' runs come of the same training runs."""
    names_a, names_b = ({run.training_run for run in arm} for arm in (compared.a, compared.b))
    if "" in names_a | names_b:
        return "not known"
    return "one training run" if names_a == names_b and len(names_a) == 1 else "trained apart"


def known_noise(store: Store, compared: Compared, *, own: SeedNoise | None, asked: str | None) -> Noise:
    """All that is known of noise. `own`: of the arms' own runs; `asked`: a seed study by NAME or NAME@VERSION.

    Raises UserError for a study that is asked for and cannot serve: unknown, or between checkpoints of one training
    run; NotComparableError when it is of none of these benchmarks or of other versions of all of them.
    """
    lineage = lineage_of(compared)
    instruments = _instruments(store, compared)
    if own is not None:
        return Noise(lineage=lineage, instruments=instruments, seeds=own)
    if lineage == "one training run":
        if asked is not None:
            raise UserError(
                f"--seed-study {asked}: both checkpoints are of training run {compared.a[0].training_run!r}, and no "
                "other training seed lies between them; leave it out"
            )
        return Noise(lineage=lineage, instruments=instruments)
    if asked is None and lineage == "not known":
        why = "a run does not say which training run it is of; import it with --training-run, or name a --seed-study"
        return Noise(lineage=lineage, instruments=instruments, unanswerable=why)
    seeds, why = _from_study(store, compared, asked)
    return Noise(lineage=lineage, instruments=instruments, seeds=seeds, unanswerable=why)


def _from_study(store: Store, compared: Compared, asked: str | None) -> tuple[SeedNoise | None, str]:
    """The study that was asked for; else the one that serves best, or why there is none."""
    if asked is not None:
        study = study_named(store, asked)
        found = _usable(study, compared)
        if not found:
            reasons = "; ".join(f"{arm.benchmark}: {_absent(study, arm, compared)}" for arm in compared.arms)
            raise NotComparableError(f"seed study {study.reference} serves no benchmark of this comparison: {reasons}")
        return _seed_noise(study, compared, scales_of(store, compared.runs)), ""
    newest = {study.name: study for study in store.catalog.seed_studies()}.values()
    usable = [study for study in newest if _usable(study, compared)]
    if not usable:
        seen = "; ".join(
            dict.fromkeys(
                _absent(study, arm, compared)
                for study in newest
                for arm in compared.arms
                if study.of(arm.benchmark, arm.metric) is not None
            )
        )
        return None, f"no seed study of these benchmarks ({seen or WAY_OUT})"
    scales = scales_of(store, compared.runs)
    best = max(
        usable,
        key=lambda s: (len(_usable(s, compared)), not scale_difference(s.scale, scales), s.measured_at, s.name),
    )
    return _seed_noise(best, compared, scales), ""


def study_named(store: Store, reference: str) -> SeedStudy:
    """A study by NAME or NAME@VERSION. Raises UserError with close names."""
    name, _, version = reference.partition("@")
    if version and not version.isdecimal():
        raise UserError(f"seed study {reference!r}: {version!r} is no version; write NAME or NAME@NUMBER")
    return store.catalog.seed_study(name, int(version) if version else None)


def _usable(study: SeedStudy, compared: Compared) -> list[str]:
    return [arm.benchmark for arm in compared.arms if not _absent(study, arm, compared)]


def _absent(study: SeedStudy, arm: BenchmarkArms, compared: Compared) -> str:
    """Why a study says nothing of a benchmark; '' when it does."""
    found = study.of(arm.benchmark, arm.metric)
    if found is None:
        return f"seed study {study.reference} has no {arm.metric} of {arm.benchmark}"
    versions = [version.version for version in compared.versions[arm.benchmark]]
    if found.version and any(version != found.version for version in versions):
        other = " and ".join(f"@{version}" for version in dict.fromkeys(versions))
        return f"seed study {study.reference} is of {arm.benchmark}@{found.version}, not of {other}"
    if found.unit != arm.info.unit:
        return f"seed study {study.reference} has {arm.benchmark} in {found.unit}, not in {arm.info.unit}"
    return ""


def _seed_noise(study: SeedStudy, compared: Compared, scales: Sequence[Scale]) -> SeedNoise:
    differs = scale_difference(study.scale, scales)
    standing: Standing = "EXTRAPOLATED" if differs else "prior"
    k = sorted({b.n_seeds for b in study.benchmarks})
    runs = f"{k[0]}" if len(k) == 1 else f"{k[0]} to {k[-1]}"
    origin = f"{study.reference}: {runs} runs of {words(study.scale)}, measured {study.measured_at}, {study.source}"
    if differs:
        origin += f"; enlarged, since {differs}"
    absent = {arm.benchmark: why for arm in compared.arms if (why := _absent(study, arm, compared))}
    return SeedNoise(
        design="study",
        runs=_of_study(study, {arm.benchmark: arm.metric for arm in compared.arms}, absent),
        standing=standing,
        origin=origin,
        reference=study.reference,
        absent=absent,
    )


def _of_study(study: SeedStudy, metrics: Mapping[str, str], absent: Mapping[str, str]) -> dict[str, SeedRuns]:
    """One metric of each of the study's benchmarks: the one compared, else its first. All inform the prior."""
    chosen: dict[str, StudiedBenchmark] = {}
    for found in study.benchmarks:
        if found.benchmark in absent:
            continue
        if found.benchmark not in chosen or metrics.get(found.benchmark) == found.metric:
            chosen[found.benchmark] = found
    return {
        name: SeedRuns(
            unit=found.unit,
            spreads=(Spread(n_runs=found.n_seeds, raw=found.s2_raw, psi=found.psi_seed, flips=found.flip_variance),),
            scores=(found.scores,) if found.scores else (),
        )
        for name, found in chosen.items()
    }


def _instruments(store: Store, compared: Compared) -> dict[str, Instrument]:
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


def sources(compared: Compared, noise: Noise) -> dict[str, str]:
    """What moved the numbers, and what of it was measured, in words. Nothing is claimed that no run has shown."""
    return {
        "sampling": "measured: the intervals, from the item pairs",
        "engine": _engine_words(compared, noise),
        "environment": _environment_words(compared, noise),
        "training seed": _seed_words(noise),
    }


def _engine_words(compared: Compared, noise: Noise) -> str:
    origins = {run.origin for run in compared.runs}
    if "mock" in origins:
        return MOCK_MARK
    if "imported" in origins:
        return "unknown: imported rows name no engine that can be rerun"
    if _terms(noise, "environment"):
        return "in the environments' effect"
    if all(term.sd is None for term in _terms(noise, "engine")):
        return "not yet measured by a nightly rerun in this environment"
    return _ranged(noise, "engine")


def _environment_words(compared: Compared, noise: Noise) -> str:
    prints = [run.env_fingerprint for run in compared.runs]
    if None in prints:
        return "unknown: a run has no fingerprint"
    if len(set(prints)) == 1:
        return "the same in both runs"
    names = [", ".join(sorted({str(run.env_fingerprint) for run in arm})) for arm in (compared.a, compared.b)]
    if any(term.sd is None for term in _terms(noise, "environment")):
        effect = "its effect is not yet measured and not in the intervals"
    else:
        effect = _ranged(noise, "environment")
    return f"differs ({names[0]} in A, {names[1]} in B); {effect}"


def _seed_words(noise: Noise) -> str:
    if noise.seeds is not None:
        kind = "measured" if noise.seeds.standing == "measured" else noise.seeds.standing
        return f"in the answer for the recipes alone; {kind}: {noise.seeds.origin}"
    if noise.lineage == "one training run":
        return "not in this comparison: it speaks of two checkpoints of one training run, not of recipes"
    return (
        "not in this comparison: it says whether the checkpoints differ; whether the recipes do is not answerable "
        f"without a seed study: {noise.unanswerable}"
    )


def _terms(noise: Noise, source: str) -> list[VarianceTerm]:
    return [found.term for found in noise.instruments.values() if found.term.source == source]


def _ranged(noise: Noise, source: str) -> str:
    """One benchmark's origin for all, and whether anything was added."""
    terms = [term for term in _terms(noise, source) if term.sd is not None]
    moved = [name for name, found in noise.instruments.items() if found.term.source == source and found.added]
    said = f"adds to the intervals of {len(moved)} of {len(terms)} benchmarks" if moved else "adds nothing"
    return f"measured: {terms[0].origin}; {said}"
