"""Several runs an arm, trained with their own seeds -> whether they can be arms, and how far their runs lie apart.

Items are crossed with runs: every run answers the same ones. The difference of the arms' mean scores, item by item,
holds the items' part of the error and what single runs flip; the spread between runs, less those flips, is the seeds'.
Where each seed is in both arms, the seeds' part is the spread of the differences of runs with one seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eval_tasks.compare.noise import SeedNoise, SeedRuns
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.several_runs import aligned
from eval_tasks.errors import UserError
from eval_tasks.records import Run
from eval_tasks.records.seed_study import FEWEST_RUNS
from eval_tasks.stats.recipes import spread

Tables = tuple[Sequence[pa.Table], Sequence[pa.Table]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedArms:
    """The runs of both arms, the first of each first. `seeds`: their training seeds, empty where nobody said."""

    a: tuple[Run, ...]
    b: tuple[Run, ...]
    seeds: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def several(self) -> bool:
        """Whether an arm has more than one run."""
        return len(self.a) > 1 or len(self.b) > 1

    @property
    def order_of_b(self) -> list[int] | None:
        """For each run of A the place of its seed's run in B; None where the seeds are not the same."""
        return order_of(*self._names())

    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a run's seed is called: its seed, or its training run where the arms are steps of the same ones."""
        if any(self.seeds):
            return self.seeds
        names_a, names_b = (tuple(run.training_run for run in arm) for arm in (self.a, self.b))
        return (names_a, names_b) if "" not in names_a and set(names_a) == set(names_b) else ((), ())


def order_of(seeds_a: tuple[str, ...], seeds_b: tuple[str, ...]) -> list[int] | None:
    """For each seed of A its place in B; None where nobody named any, or they are not the same."""
    if not seeds_a or sorted(seeds_a) != sorted(seeds_b):
        return None
    return [seeds_b.index(name) for name in seeds_a]


def mean_notes(n_a: int, n_b: int) -> tuple[str, ...]:
    """That scores are means over runs; nothing where each arm has one."""
    if n_a == n_b == 1:
        return ()
    return (f"scores are means over {n_a} runs of A and {n_b} of B, item by item",)


def check_files(digests: Sequence[Sequence[str]], seeds: tuple[Sequence[str], Sequence[str]]) -> None:
    """Raises UserError for files of scores that are no arms: too few, one content twice, seeds of some alone."""
    for name, found, named in zip("AB", digests, seeds, strict=True):
        _enough(name, len(found), "file")
        refuse_doubled(f"arm {name}", "content", found)
        _named_whole(name, len(found), named)
    _apart("a file's content", *digests)
    _named_both(*seeds)


def check_arms(arms: SeedArms) -> None:
    """Raises UserError for arms that are no seeds of a recipe: too few, doubled, or one training run twice."""
    for name, runs, seeds in (("A", arms.a, arms.seeds[0]), ("B", arms.b, arms.seeds[1])):
        _enough(name, len(runs), "run")
        whose = f"arm {name}"
        refuse_doubled(whose, "run", [run.run_id for run in runs])
        refuse_doubled(whose, "checkpoint", [run.request.checkpoint_id for run in runs if run.request.checkpoint_id])
        refuse_doubled(whose, "training run", [run.training_run for run in runs if run.training_run])
        _named_whole(name, len(runs), seeds)
    _named_both(*arms.seeds)
    _apart("run", *([run.run_id for run in arm] for arm in (arms.a, arms.b)))
    _apart("checkpoint", *([run.request.checkpoint_id for run in arm] for arm in (arms.a, arms.b)))
    names_a, names_b = ({run.training_run for run in arm} - {""} for arm in (arms.a, arms.b))
    if names_a & names_b and names_a != names_b:
        shared = ", ".join(sorted(names_a & names_b))
        raise UserError(
            f"training run {shared} is in both arms and others are not; compare steps of the same training runs, or "
            "training runs that are each in one arm"
        )


def _enough(arm: str, n: int, what: str) -> None:
    if n < FEWEST_RUNS:
        raise UserError(
            f"arm {arm} has {n} {what}{'s' if n > 1 else ''}; where an arm has several, both have {FEWEST_RUNS} or "
            "more. For fewer compare one run with one, with a seed study of the recipe ('seeds record')"
        )


def _named_whole(arm: str, n: int, seeds: Sequence[str]) -> None:
    if seeds and (len(seeds) != n or "" in seeds):
        raise UserError(f"arm {arm}: a training seed is given for some of its runs and not for all; name all")
    refuse_doubled(f"arm {arm}", "training seed", list(seeds))


def _named_both(seeds_a: Sequence[str], seeds_b: Sequence[str]) -> None:
    if bool(seeds_a) != bool(seeds_b):
        raise UserError("training seeds are given for one arm and not for the other; name both, or none")


def _apart(what: str, of_a: Sequence[str], of_b: Sequence[str]) -> None:
    both = (set(of_a) & set(of_b)) - {""}
    if both:
        raise UserError(f"{what} {min(both)} is in both arms; an arm's runs are its own")


def refuse_doubled(whose: str, what: str, names: Sequence[str]) -> None:
    """Raise UserError for a run, checkpoint, training run or seed that is there twice."""
    doubled = sorted(name for name, n in Counter(names).items() if n > 1)
    if doubled:
        raise UserError(f"{whose} has {what} {doubled[0]!r} twice; its runs are of one recipe and of different seeds")


def seeds_of_arms(order: list[int] | None, tables: Mapping[str, Tables], of: Mapping[str, BenchmarkArms]) -> SeedNoise:
    """How far the arms' runs lie apart, benchmark by benchmark, on the items that all of them scored.

    order: for each run of A the place of its seed's run in B, where they are held against each other. Every benchmark
    has the same runs.
    """
    runs: dict[str, SeedRuns] = {}
    absent: dict[str, str] = {}
    for name, (tables_a, tables_b) in tables.items():
        if of[name].not_tested:
            absent[name] = of[name].not_tested
            continue
        found = _seed_runs(of[name], tables_a, tables_b, order)
        if found is None:
            absent[name] = "fewer than two items have a score in every run"
        else:
            runs[name] = found
    n_a, n_b = map(len, next(iter(tables.values())))
    how = f"the {n_a} and {n_b} runs of the two arms"
    if order is not None:
        how = f"{n_a} pairs of runs that share a training seed"
    return SeedNoise(
        design="arms" if order is None else "pairs", runs=runs, standing="measured", origin=how, absent=absent
    )


def _seed_runs(
    arms: BenchmarkArms, tables_a: Sequence[pa.Table], tables_b: Sequence[pa.Table], order: list[int] | None
) -> SeedRuns | None:
    found = aligned((*tables_a, *tables_b), arms.info, clustered=arms.clustered, changed=arms.changed)
    if found is None:
        return None
    values_a, values_b = found.values[: len(tables_a)], found.values[len(tables_a) :]
    groups = [values_a, values_b] if order is None else [values_a - values_b[order]]
    return SeedRuns(
        unit=arms.info.unit,
        spreads=tuple(spread(values, found.weights, found.clusters) for values in groups),
        scores=tuple(found.scores(values) for values in groups),
    )
