"""What the catalog has of noise -> what a comparison of some runs carries: engine, environments, training seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_tasks.compare.chosen_study import chosen_study
from eval_tasks.compare.compared import Compared, lineage_of
from eval_tasks.compare.noise import Noise, SeedNoise
from eval_tasks.compare.reruns import instruments_of
from eval_tasks.errors import UserError
from eval_tasks.records import VarianceTerm
from eval_tasks.records.engine import MOCK_MARK

if TYPE_CHECKING:
    from eval_tasks.store import Store


def known_noise(store: Store, compared: Compared, *, own: SeedNoise | None, asked: str | None) -> Noise:
    """All that is known of noise. `own`: of the arms' own runs; `asked`: a seed study by NAME or NAME@VERSION.

    Raises UserError for a study that is asked for and cannot serve: unknown, or between checkpoints of one training
    run; NotComparableError when it is of none of these benchmarks or of other versions of all of them.
    """
    lineage = lineage_of(compared)
    instruments = instruments_of(store, compared)
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
    seeds, why = chosen_study(store, compared, asked)
    return Noise(lineage=lineage, instruments=instruments, seeds=seeds, unanswerable=why)


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
