"""The seed studies of the catalog and a comparison -> the one that answers for its recipes, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_tasks.compare.compared import Compared
from eval_tasks.compare.noise import SeedNoise, SeedRuns
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.scale import scale_difference, scales_of, words
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import Scale, SeedStudy, StudiedBenchmark
from eval_tasks.records.variance import Standing
from eval_tasks.stats.recipes import Spread

if TYPE_CHECKING:
    from eval_tasks.store import Store

WAY_OUT = "record one with 'seeds record' or 'seeds import'"


def chosen_study(store: Store, compared: Compared, asked: str | None) -> tuple[SeedNoise | None, str]:
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
