"""Two score sets of one run's outputs -> what moved from the old grader to the new one. Runs no grader.

The pairs are of the same outputs, so that a difference is the graders' alone: nothing was sampled anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from eval_tasks.compare import BenchmarkArms, diagnose_graders
from eval_tasks.compare.pairing import shares_items
from eval_tasks.compare.runs import is_stratified, label_of, shared_traits
from eval_tasks.compare.testing import paired_test
from eval_tasks.digests import canonical_json
from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, PairedTest, Run
from eval_tasks.records.grader import BESIDE
from eval_tasks.records.regrade import GroupMove, MovedScores
from eval_tasks.report import regrade_html, regrade_json
from eval_tasks.stats.item_scores import item_scores, measured
from eval_tasks.store import Store

SHOWN_ITEMS = 20

_COLUMNS = ("item_id", "value", "weight", "status", "stratum", "cluster")
_ALPHA = 0.05


def earlier_grader(store: Store, run_id: str, benchmark_id: str, new: str) -> str:
    """Whose scores `new` is held against: the version of it before, else the scorer that stands; '' for nobody's."""
    graders = store.scores.graders(run_id, benchmark_id)
    name = new.partition("@")[0]
    before = graders[: graders.index(new)] if new in graders else graders
    versions = [grader for grader in before if grader.partition("@")[0] == name]
    if versions:
        return versions[-1]
    if not new.startswith(BESIDE):
        return ""
    standing = store.scores.standing(run_id, benchmark_id)
    return standing[-1] if standing else ""


def moved_scores(
    store: Store,
    run: Run,
    benchmark: BenchmarkVersion,
    new: str,
    *,
    against: str | None = None,
    n_items: int = SHOWN_ITEMS,
) -> MovedScores:
    """What moved on a benchmark's primary metric. `against`: the old grader's reference; None takes `earlier_grader`.

    Raises UserError when `new` or `against` has no scores, or they are one grader.
    """
    if against == new:
        raise UserError(f"{new!r} is to be held against itself; name another grader with --against")
    old = earlier_grader(store, run.run_id, benchmark.benchmark_id, new) if against is None else against
    metric = benchmark.primary_metric
    after = store.scores.read(run.run_id, benchmark.benchmark_id, new, metric, _COLUMNS)
    before = after.slice(0, 0)
    if old:
        before = store.scores.read(run.run_id, benchmark.benchmark_id, old, metric, _COLUMNS)
    by, names = _groups(store, benchmark, after)
    _, names_before = _groups(store, benchmark, before)
    total, test = _move(benchmark, "", after, before)
    moved = MovedScores(
        run_id=run.run_id,
        label=label_of(run),
        benchmark=benchmark.name,
        version=benchmark.version,
        metric=metric,
        unit=test.unit,
        higher_is_better=test.higher_is_better,
        new_grader=new,
        old_grader=old,
        total=total,
        p=test.p,
        by=by,
        groups=tuple(
            _move(benchmark, name, _only(after, names, name), _only(before, names_before, name))[0]
            for name in sorted({name for name in [*names, *names_before] if name})
        ),
        notes=_notes(store, (new, old), test),
        not_compared=test.not_tested if old else "nobody scored these outputs before",
    )
    if not old or test.not_tested:
        return moved
    found = diagnose_graders(store, run, benchmark, graders=(new, old), n_items=n_items)
    return replace(moved, flipped=found.items)


def keep_moves(store: Store, run_id: str, moved: Sequence[MovedScores], now: str) -> str:
    """Keep a run's report of what moved, as HTML and JSON among its reports; the URI of the HTML.

    The same moves are the same blobs.
    """
    html = store.blobs.put(regrade_html(moved).encode("utf-8"))
    store.catalog.save_report(run_id, html, "regrade-html", now)
    store.catalog.save_report(run_id, store.blobs.put(canonical_json(regrade_json(moved))), "regrade-json", now)
    return store.blobs.uri(html)


def _groups(store: Store, benchmark: BenchmarkVersion, table: pa.Table) -> tuple[str, list[str | None]]:
    """What the benchmark groups its items by, and each row's group."""
    if benchmark.category_key is not None:
        category = {i.item_id: i.metadata.get("category") for i in store.blobs.iter_items(benchmark.items_blob)}
        return "category", [category.get(item_id) for item_id in table["item_id"].to_pylist()]
    if benchmark.stratum_key is not None:
        return "stratum", table["stratum"].to_pylist()
    return "", [None] * table.num_rows


def _only(table: pa.Table, names: list[str | None], group: str) -> pa.Table:
    return table.filter(pa.array([name == group for name in names], pa.bool_()))


def _move(benchmark: BenchmarkVersion, group: str, after: pa.Table, before: pa.Table) -> tuple[GroupMove, PairedTest]:
    info = shared_traits(benchmark, benchmark, benchmark.primary_metric, (after, before))
    clustered, stratified = benchmark.cluster_key is not None, is_stratified(benchmark) and not group
    sides = []
    for table in (before, after):
        items = item_scores(table, info, clustered=clustered, stratified=stratified)
        sides.append(measured(items, info, n_missing=items.n_missing))
    old, new = sides
    test = paired_test(
        BenchmarkArms(
            benchmark=benchmark.name,
            metric=benchmark.primary_metric,
            info=info,
            a=after,
            b=before,
            clustered=clustered,
            stratified=stratified,
            not_tested="" if shares_items(after, before) else "no item has scores by both graders",
        ),
        alpha=_ALPHA,
        margin=None,
    ).test
    return (
        GroupMove(
            group=group,
            old=old.score,
            n_old=old.n,
            old_ci95=old.ci,
            new=new.score,
            n_new=new.n,
            new_ci95=new.ci,
            n_pairs=test.n_pairs,
            delta=test.delta,
            ci95=test.ci95,
            lost=test.c,
            gained=test.b,
        ),
        test,
    )


def _notes(store: Store, graders: tuple[str, str], test: PairedTest) -> tuple[str, ...]:
    """What a reader must know of the two score sets."""
    notes = [note for note in test.notes if "no score in an arm" in note]
    for reference in graders:
        known = store.catalog.grader_named(reference) if reference else None
        if known is not None and not known.reproducible:
            notes.append(f"{reference} is NOT REPRODUCIBLE: the same outputs may get other scores of it")
    return tuple(notes)
