"""Which grader scored both arms of a benchmark, and what a comparison's reader must know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Run
from eval_tasks.records.grader import BESIDE

if TYPE_CHECKING:
    from eval_tasks.store import Store


class GradersOnRecord:
    """What the catalog has of graders, read once for a comparison of many benchmarks."""

    def __init__(self, store: Store) -> None:
        catalog = store.catalog
        self._graders = {grader.grader: grader for grader in catalog.graders()}
        self._in_use = {use.benchmark: use for use in catalog.graders_in_use()}
        self._qualifications = catalog.qualifications()
        sets = catalog.agreement_sets() if self._qualifications else []
        self._speaks_for = {s.reference: s.benchmark for s in sets}

    def notes(self, reference: str, benchmark: str) -> tuple[str, ...]:
        """That the grader was qualified for a benchmark, refused or only put in use, who is in use instead, and more.

        Nothing on a benchmark's own scorer, which is code with a version, nor on people, who are what a grader is held
        against, unless something is on record of them.
        """
        notes = []
        grader, in_use = self._graders.get(reference), self._in_use.get(benchmark)
        if grader is not None and grader.kind == "model" and not grader.reproducible:
            notes.append(f"{reference} is NOT REPRODUCIBLE: its verdicts are replies of an endpoint")
        tried = [
            q
            for q in self._qualifications
            if q.grader == reference and self._speaks_for.get(q.agreement_set) in ("", benchmark)
        ]
        adopted = next((q for q in reversed(tried) if q.adopted), None)
        if adopted is not None:
            notes.append(
                f"{reference} is qualified: not inferior to {adopted.against} on {adopted.agreement_set} by "
                f"{100 * adopted.margin:g} points in any category ({adopted.qualified_at})"
            )
        elif tried:
            notes.append(f"{reference} is NOT QUALIFIED: {tried[-1].reason} ({tried[-1].agreement_set})")
        elif in_use is not None and in_use.grader == reference:
            notes.append(
                f"{reference} is in use by a person's word and not qualified: {in_use.reason} ({in_use.since})"
            )
        elif grader is not None and grader.kind == "model":
            notes.append(f"{reference} is not qualified: it was never held against people's labels for this benchmark")
        if in_use is not None and in_use.grader != reference:
            notes.append(f"the grader in use for {benchmark} is {in_use.grader}, not {reference}")
        return tuple(notes)


def scored_by(
    store: Store,
    runs_a: Sequence[Run],
    runs_b: Sequence[Run],
    versions: Mapping[str, tuple[BenchmarkVersion, BenchmarkVersion]],
    grader: str,
) -> dict[str, str]:
    """The benchmarks that `grader` scored in all runs, each with the reference of its score sets.

    `grader`: a whole reference (``judge/helpful@1+1a2b3c4d``); or NAME or NAME@VERSION, which mean the latest that
    scored all runs of a benchmark, and which need no ``judge/`` and the like. Raises NotComparableError when there is
    none, UserError for a name that several graders have.
    """
    graders = {
        name: [
            store.scores.graders(run.run_id, version.benchmark_id)
            for runs, version in zip((runs_a, runs_b), pair, strict=True)
            for run in runs
        ]
        for name, pair in versions.items()
    }
    common = {
        name: [known for known in of_runs[0] if all(known in other for other in of_runs)]
        for name, of_runs in graders.items()
    }
    found = {name: means[-1] for name, known in common.items() if (means := [g for g in known if _means(grader, g)])}
    kinds = {
        reference.partition("@")[0] for known in common.values() for reference in known if _means(grader, reference)
    }
    if len(kinds) > 1:
        raise UserError(f"grader {grader!r} may be any of {', '.join(sorted(kinds))}; name one of these")
    if not found:
        known = sorted({g for of_benchmark in common.values() for g in of_benchmark})
        in_one = any(_means(grader, g) for of_runs in graders.values() for of_run in of_runs for g in of_run)
        hint = "it scored one of them: regrade the other; " if in_one else ""
        raise NotComparableError(
            f"grader {grader!r} scored no benchmark of both runs; {hint}{did_you_mean(grader, known)}"
        )
    return found


def _means(name: str, reference: str) -> bool:
    """Whether a reference is what somebody calls `name`: the whole of it, or without digest, version or kind."""
    versioned = reference.partition("+")[0]
    names = {reference, versioned, versioned.partition("@")[0]}
    return name in names | {each.removeprefix(kind) for each in names for kind in BESIDE}


def common_grader(store: Store, runs: Sequence[tuple[Run, BenchmarkVersion]]) -> str:
    """The latest grader of the first run that also scored all others: arms are always scored by one grader version."""
    graders = [store.scores.standing(run.run_id, version.benchmark_id) for run, version in runs]
    name = runs[0][1].name
    for (run, _), found in zip(runs, graders, strict=True):
        if not found:
            raise NotComparableError(f"run {run.run_id} has no scores of {name!r}; grade it first")
    common = [grader for grader in graders[0] if all(grader in found for found in graders)]
    if not common:
        other = next(k for k, found in enumerate(graders) if not set(found) & set(graders[0]))
        raise NotComparableError(
            f"{name}: run {runs[0][0].run_id} was scored by {graders[0][-1]!r} and run {runs[other][0].run_id} by "
            f"{graders[other][-1]!r}; regrade one of them, so that one grader version scores both"
        )
    return str(common[-1])
