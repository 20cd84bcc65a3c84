"""Two runs of the store, or two files of scores -> where they disagree: groups that lost, and items side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.compare.compatibility import compatibility, refuse_mock_against_real
from eval_tasks.compare.files import read_scores
from eval_tasks.compare.flips import Flips, grouped
from eval_tasks.compare.graders import common_grader, scored_by
from eval_tasks.compare.items import changed_items
from eval_tasks.compare.pairing import shared_rows
from eval_tasks.compare.runs import benchmarks_of
from eval_tasks.errors import NotComparableError, UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, Comparison, Response, Run, to_json
from eval_tasks.records.diagnosis import Diagnosis, FlippedItem
from eval_tasks.scoring import metric_of

if TYPE_CHECKING:
    from eval_tasks.store import Store

SHOWN_ITEMS = 20

KEPT_ITEMS = 200
"""Items that are kept side by side with a comparison, over all its benchmarks; each has 3 at least."""

_COLUMNS = ("item_id", "value", "status", "stratum", "cluster", "extracted")


def diagnose(
    store: Store,
    run_a: str,
    run_b: str,
    *,
    benchmark: str | None = None,
    n_items: int = SHOWN_ITEMS,
    grader: str | None = None,
) -> list[Diagnosis]:
    """A diagnosis per benchmark that both runs have, on its primary metric; at most `n_items` items of each shown.

    `grader`: as `compare` takes it. Raises NotComparableError when the runs share no benchmark, or none that it scored;
    UserError when `benchmark` is not among them.
    """
    a, b = store.catalog.run(run_a), store.catalog.run(run_b)
    refuse_mock_against_real(a, b)
    in_a, in_b = benchmarks_of(store, a), benchmarks_of(store, b)
    shared = [name for name in in_a if name in in_b]
    if not shared:
        raise NotComparableError(
            f"runs {a.run_id} and {b.run_id} share no benchmark: {sorted(in_a)} against {sorted(in_b)}"
        )
    if benchmark is not None and benchmark not in shared:
        raise UserError(f"the runs do not share benchmark {benchmark!r}; {did_you_mean(benchmark, shared)}")
    wanted = {name: (in_a[name], in_b[name]) for name in (shared if benchmark is None else [benchmark])}
    if grader is None:
        return [_of_runs(store, (a, b), versions, n_items) for versions in wanted.values()]
    graders = scored_by(store, [a], [b], wanted, grader)
    return [
        _of_runs(store, (a, b), wanted[name], n_items, graders=(reference, reference))
        for name, reference in graders.items()
    ]


def keep_diagnoses(store: Store, comparison: Comparison) -> Comparison:
    """Diagnose every tested benchmark of a stored comparison, on the metric it was tested on, and keep it with it.

    By the grader that it was tested by. Gives the comparison as it then stands in the catalog.
    """
    a, b = store.catalog.run(comparison.run_a), store.catalog.run(comparison.run_b)
    in_a, in_b = benchmarks_of(store, a), benchmarks_of(store, b)
    tests = [t for t in comparison.tests if not t.not_tested]
    n_items = min(SHOWN_ITEMS, max(3, KEPT_ITEMS // max(1, len(tests))))
    found = [
        _of_runs(
            store,
            (a, b),
            (in_a[t.benchmark], in_b[t.benchmark]),
            n_items,
            metric=t.metric,
            graders=(t.grader, t.grader),
        )
        for t in tests
    ]
    blob = store.blobs.put_json([to_json(d) for d in found])
    comparison = replace(comparison, diagnoses_blob=blob)
    store.catalog.save_comparison(comparison)
    return comparison


def diagnose_graders(
    store: Store, run: Run, benchmark: BenchmarkVersion, *, graders: tuple[str, str], n_items: int = SHOWN_ITEMS
) -> Diagnosis:
    """Where two graders of the same outputs disagree on the primary metric: the first stands for A, the other for B."""
    return _of_runs(store, (run, run), (benchmark, benchmark), n_items, graders=graders)


def diagnose_files(a: Path, b: Path, *, benchmark: str | None = None, n_items: int = SHOWN_ITEMS) -> list[Diagnosis]:
    """The same from two plain files, by their `category` and `cluster`; they hold no outputs to show."""
    tables = read_scores(a), read_scores(b)
    names = [set(pc.unique(t["benchmark"]).to_pylist()) for t in tables]
    shared = sorted(names[0] & names[1])
    if not shared:
        raise NotComparableError(
            f"{a} and {b} have no benchmark in common: {sorted(names[0])} against {sorted(names[1])}"
        )
    if benchmark is not None and benchmark not in shared:
        raise UserError(f"the files do not share benchmark {benchmark!r}; {did_you_mean(benchmark, shared)}")
    result = []
    for name in shared if benchmark is None else [benchmark]:
        left, right = (t.filter(pc.equal(t["benchmark"], name)) for t in tables)
        about = Diagnosis(run_a=a.stem, run_b=b.stem, benchmark=name, metric="score")
        groups = {by: _column(left, by) for by in ("category", "cluster")}
        result.append(_diagnosis(about, left, right, groups, n_items)[0])
    return result


def _of_runs(
    store: Store,
    runs: tuple[Run, Run],
    versions: tuple[BenchmarkVersion, BenchmarkVersion],
    n_items: int,
    *,
    metric: str | None = None,
    graders: tuple[str, str] | None = None,
) -> Diagnosis:
    (a, b), (in_a, in_b) = runs, versions
    metric = metric or in_a.primary_metric
    about = Diagnosis(run_a=a.run_id, run_b=b.run_id, benchmark=in_a.name, metric=metric)
    if not (metric_of(in_a, metric).binary and metric_of(in_b, metric).binary):
        return replace(about, not_diagnosed=f"{metric} is not right or wrong, so that no item flips")
    graders = graders or (common_grader(store, [(a, in_a), (b, in_b)]),) * 2
    left, right = (
        store.scores.read(run.run_id, version.benchmark_id, grader=grader, metric=metric, columns=_COLUMNS)
        for run, version, grader in zip(runs, versions, graders, strict=True)
    )
    if changed := changed_items(store, in_a, in_b):
        others = pa.array(sorted(changed), pa.string())
        left = left.filter(pc.invert(pc.is_in(left["item_id"].cast(pa.string()), value_set=others)))
    groups: dict[str, pa.Array] = {by: _column(left, by) for by in ("stratum", "cluster")}
    if in_a.category_key is not None:
        category = {i.item_id: i.metadata.get("category") for i in store.blobs.iter_items(in_a.items_blob)}
        names = [category.get(i) for i in left["item_id"].to_pylist()]
        groups = {"category": pa.array(names, pa.string()), **groups}
    found, flips = _diagnosis(about, left, right, groups, n_items)
    if flips is None:
        if differs := compatibility(in_a, in_b)[1]:
            return replace(about, not_diagnosed=f"{found.not_diagnosed}: {differs}")
        return found
    return _with_texts(store, found, runs, versions, (left, right))


def _diagnosis(
    about: Diagnosis, left: pa.Table, right: pa.Table, groups: Mapping[str, pa.Array], n_items: int
) -> tuple[Diagnosis, Flips | None]:
    """Flips are items that both arms scored; the order of items is that of their ids. `groups`: a name per row of A."""
    kept_a, kept_b = (pc.and_(pc.is_valid(t["value"]), pc.invert(_unscored(t))) for t in (left, right))
    rows_a, rows_b = (
        pa.array(range(t.num_rows), pa.int64()).filter(k.combine_chunks()) for t, k in ((left, kept_a), (right, kept_b))
    )
    ids_a, ids_b = _column(left, "item_id").take(rows_a), _column(right, "item_id").take(rows_b)
    shared_a, shared_b = (pa.array(rows) for rows in shared_rows(ids_a, ids_b))
    if not len(shared_a):
        return replace(about, not_diagnosed="no item has a score in both runs"), None
    order = pc.sort_indices(ids_a.take(shared_a))
    rows_a, rows_b = rows_a.take(shared_a).take(order), rows_b.take(shared_b).take(order)
    a, b = (_column(t, "value").take(rows).to_numpy() for t, rows in ((left, rows_a), (right, rows_b)))
    if not all(np.isin(side, (0.0, 1.0)).all() for side in (a, b)):
        return replace(about, not_diagnosed="the scores are not right or wrong, so that no item flips"), None
    flips = Flips(
        item_ids=_column(left, "item_id").take(rows_a),
        a=a,
        b=b,
        names={by: names.take(rows_a) for by, names in groups.items()},
    )
    lost, gained = flips.indices(lost=True), flips.indices(lost=False)
    ranked = [g for g in (grouped(flips, by) for by in groups) if g is not None]
    rank = {g.group: k for k, g in enumerate(ranked[0].groups)} if ranked else {}

    def shown(indices: list[int], most: int) -> list[int]:
        """Items of the groups that lost most come first."""
        first = flips.names[ranked[0].by].take(pa.array(indices, pa.int64())).to_pylist() if ranked else indices
        places = {k: rank.get(name or "", len(rank)) if ranked else 0 for k, name in zip(indices, first, strict=True)}
        return sorted(indices, key=lambda k: (places[k], k))[:most]

    chosen = shown(lost, n_items)
    chosen += shown(gained, n_items - len(chosen))
    lost_set = set(lost)
    items = tuple(
        FlippedItem(
            item_id=flips.item_ids[k].as_py(),
            lost=k in lost_set,
            **{by: names[k].as_py() for by, names in flips.names.items()},
        )
        for k in chosen
    )
    found = replace(about, n_pairs=len(a), lost=len(lost), gained=len(gained), by=tuple(ranked), items=items)
    return found, flips


def _unscored(table: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(table["status"].cast(pa.string()), value_set=pa.array(["missing", "excluded"]))


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def _lookup(table: pa.Table, column: str) -> dict[str, str | None]:
    return dict(zip(table["item_id"].to_pylist(), table[column].to_pylist(), strict=True))


def _with_texts(
    store: Store,
    found: Diagnosis,
    runs: tuple[Run, Run],
    versions: tuple[BenchmarkVersion, BenchmarkVersion],
    scores: tuple[pa.Table, pa.Table],
) -> Diagnosis:
    """The shown items with gold answer, outputs and what was extracted: only their rows are read."""
    ids = [item.item_id for item in found.items]
    gold = {i.item_id: i for i in store.blobs.get_items(versions[0].items_blob, ids)} if ids else {}
    outputs = [
        {r.item_id: _output(r) for r in store.responses.rows(run.run_id, version.benchmark_id, ids)} if ids else {}
        for run, version in zip(runs, versions, strict=True)
    ]
    extracted = [_lookup(t, "extracted") for t in scores]
    return replace(
        found,
        items=tuple(
            replace(
                item,
                prompt=_text(dict(gold[item.item_id].fields)) if item.item_id in gold else None,
                gold=_text(gold[item.item_id].target) if item.item_id in gold else None,
                output_a=outputs[0].get(item.item_id),
                output_b=outputs[1].get(item.item_id),
                extracted_a=extracted[0].get(item.item_id),
                extracted_b=extracted[1].get(item.item_id),
            )
            for item in found.items
        ),
    )


def _output(row: Response) -> str:
    """The text, or for log-probabilities their sums in the order of the choices."""
    if row.logprobs:
        return "log-probabilities " + ", ".join(f"{value:.3f}" for value in row.logprobs)
    return row.output


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
