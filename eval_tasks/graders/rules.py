"""A registered scorer as a grader of stored outputs: no model runs.

The benchmark's own scorer, as this release has it, gives all of its metrics, and its scores stand for the run like
those of an earlier version did. Another scorer is a second opinion: its first metric takes the place of the benchmark's
primary one, under ``rule/NAME@VERSION+digest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, Item, Score, ScorerRef
from eval_tasks.records.grader import RULE
from eval_tasks.scoring import (
    check_items,
    metric_of,
    metrics_of,
    primary_metric,
    score,
    scorer_digest,
    scorer_version,
    validate_scorer,
)
from eval_tasks.scoring.run_rows import Answer
from eval_tasks.store import Grader


def rule_grader(benchmark: BenchmarkVersion, name: str) -> Grader:
    """Scorer `name` of this release as a grader of a benchmark's outputs. Raises UserError when it does not fit."""
    ref = _ref(benchmark, name)
    validate_scorer(ref, benchmark.kind)
    own = name == benchmark.scorer.name
    if not own:
        wanted = metric_of(benchmark, benchmark.primary_metric)
        given = metrics_of(name, benchmark.sampling)[primary_metric(name)]
        if (given.unit, given.higher_is_better) != (wanted.unit, wanted.higher_is_better):
            raise UserError(
                f"scorer {name!r} gives {given.unit} and {benchmark.primary_metric!r} of {benchmark.name!r} is in "
                f"{wanted.unit}: they cannot stand for one another"
            )
    return Grader(
        name=name if own else f"{RULE}{name}",
        version=ref.version,
        kind="scorer",
        digest=scorer_digest(ref),
        created_at="",
    )


def rule_scores(benchmark: BenchmarkVersion, name: str, answers: Iterable[Answer]) -> Iterator[Score]:
    """The scores of the answers by scorer `name`, one answer in memory at a time.

    Raises what the scorer raises for an item that it cannot score.
    """
    own = name == benchmark.scorer.name
    first = primary_metric(name)
    scored_by = replace(benchmark, scorer=_ref(benchmark, name))
    for item, response in answers:
        for row in score(scored_by, item, response):
            if own:
                yield row
            elif row.metric == first:
                yield replace(row, metric=benchmark.primary_metric)


def check_rule(benchmark: BenchmarkVersion, name: str, items: Iterable[Item]) -> None:
    """Raise what scorer `name` raises for items that it cannot score. Registration has asked the benchmark's own."""
    if name != benchmark.scorer.name:
        check_items(_ref(benchmark, name), items)


def _ref(benchmark: BenchmarkVersion, name: str) -> ScorerRef:
    """What of an output is reasoning is the benchmark's to say, whoever scores."""
    parameters = benchmark.scorer.parameters if name == benchmark.scorer.name else {}
    return ScorerRef(
        name=name, version=scorer_version(name), parameters=parameters, reasoning=benchmark.scorer.reasoning
    )
