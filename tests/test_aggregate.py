"""Scores of a run -> its measurements."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from eval_tasks.aggregate import aggregate, aggregate_scores
from eval_tasks.errors import DataError
from eval_tasks.scoring.registry import MetricInfo
from eval_tasks.stats.intervals import proportion, wilson
from tests.compare.stored import GRADER, scores_of, stored_run
from tests.store.samples import benchmark, checkpoint, run

BENCH = benchmark(name="bench")
ACC = MetricInfo()
INST = MetricInfo(binary=False, summary="pooled")
LOSS = MetricInfo(higher_is_better=False, unit="bits per byte", binary=False)


def table(**metrics):
    """Score rows of metrics, each a list of (value, status, weight, cluster), shorter tuples filled up."""
    rows = []
    for metric, items in metrics.items():
        for k, item in enumerate(items):
            value, status, weight, cluster = (*item, *("ok", 1.0, None)[len(item) - 1 :])
            rows.append((f"i{k:04d}", metric, value, weight, status, cluster))
    names = ["item_id", "metric", "value", "weight", "status", "cluster"]
    types = [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string(), pa.string()]
    columns = zip(*rows, strict=True) if rows else [()] * 6
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


def measured(scores, n_attempted, of=BENCH, infos=None, contamination=None):
    return aggregate_scores(
        "run",
        of,
        scores,
        n_attempted=n_attempted,
        prompt_truncated=2,
        output_truncated=3,
        metric_infos=infos or {"acc": ACC},
        grader=GRADER,
        contamination=contamination,
        contamination_note="never checked" if contamination is None else "checked",
    )


def test_a_binary_metric_has_wilsons_interval():
    (m,) = measured(table(acc=[(1.0,)] * 410 + [(0.0,)] * 90), 500)
    assert (m.score, m.n, m.n_attempted, m.ci95_method, m.primary) == (0.82, 500, 500, "Wilson", True)
    assert m.ci95 == pytest.approx((0.783925, 0.851195), abs=1e-6) and m.se == pytest.approx(0.0171986, abs=1e-7)
    assert (m.n_prompt_truncated, m.n_output_truncated, m.grader, m.benchmark_id) == (2, 3, GRADER, BENCH.benchmark_id)
    assert (m.contamination, m.companion) == ("never checked", None)


def test_every_status_is_counted_and_nothing_is_dropped():
    items = [(1.0,)] * 6 + [(0.0, "invalid")] * 2 + [(None, "missing")] * 3 + [(None, "excluded")] * 4
    (m,) = measured(table(acc=items), 17)
    assert (m.n, m.n_invalid, m.n_missing, m.n_excluded) == (8, 2, 5, 4)
    assert m.n_attempted == m.n + m.n_missing + m.n_excluded == 17
    assert m.score == 0.75
    assert m.ci95 == pytest.approx((wilson(6, 13)[0], wilson(11, 13)[1]))
    assert "widened for 5 missing" in m.ci95_method


def test_an_invalid_loss_has_no_value_and_counts_as_missing_too():
    items = [(1.0,), (1.5,), (2.0,), (None, "invalid")]
    (m,) = measured(table(bits=items), 4, of=replace(BENCH, primary_metric="bits"), infos={"bits": LOSS})
    assert (m.score, m.n, m.n_invalid, m.n_missing) == (1.5, 3, 1, 1)
    assert m.unit == "bits per byte" and not m.higher_is_better


def test_clusters_count_where_the_benchmark_declares_them():
    items = [(float(k % 3 > 0), "ok", 1.0, f"p{k // 5}") for k in range(40)]
    (plain,) = measured(table(acc=items), 40)
    (clustered,) = measured(table(acc=items), 40, of=replace(BENCH, cluster_key="passage"))
    assert plain.ci95_method == "Wilson" and clustered.ci95_method == "clustered mean, CR1, t(7)"
    assert plain.score == clustered.score and plain.se != clustered.se


def test_strata_count_where_the_benchmark_declares_them_and_no_clusters():
    rows = table(acc=[(1.0,)] * 45 + [(0.0,)] * 5 + [(1.0,)] * 5 + [(0.0,)] * 45)
    rows = rows.append_column("stratum", pa.array(["easy"] * 50 + ["hard"] * 50))
    (plain,) = measured(rows, 100)
    (inside,) = measured(rows, 100, of=replace(BENCH, stratum_key="subject"))
    assert inside.ci95_method == "Wilson, stratified" and inside.score == plain.score
    assert inside.se == pytest.approx(plain.se * 0.6, rel=0.01)  # .3 of .5 is within strata
    (clustered,) = measured(rows, 100, of=replace(BENCH, stratum_key="subject", cluster_key="passage"))
    assert "clustered" in clustered.ci95_method
    checked = {f"i{k:04d}": "clean" if k % 2 else "contaminated" for k in range(100)}
    (m,) = measured(rows, 100, of=replace(BENCH, stratum_key="subject"), contamination=checked)
    assert m.companion.se < proportion(25, 50).se * 0.7


def test_pooled_metrics_are_not_means_of_means():
    scores = table(acc=[(1.0,), (0.0,)], inst=[(1.0, "ok", 1.0), (1 / 3, "ok", 3.0)])
    acc, inst = measured(scores, 2, infos={"acc": ACC, "inst": INST})
    assert (acc.metric, inst.metric, acc.primary, inst.primary) == ("acc", "inst", True, False)
    assert inst.score == pytest.approx(2 / 4) and inst.ci95_method == "ratio, t(1)"


def test_no_row_at_all_is_a_measurement_of_nothing():
    (m,) = measured(table(), 5)
    assert (m.score, m.n, m.se, m.n_missing, m.n_attempted) == (None, 0, None, 5, 5)
    (empty,) = measured(table(), 0)
    assert (empty.score, empty.ci95, empty.ci95_method) == (None, None, "no scored items")


def test_one_item_has_no_standard_error():
    (m,) = measured(table(acc=[(1.0,)]), 1)
    assert m.se is None and m.ci95 == pytest.approx((0.206549, 1.0), abs=1e-6)


def test_companion_stands_beside_the_score():
    items = [(1.0,)] * 58 + [(0.0,)] * 2 + [(1.0,)] * 745 + [(0.0,)] * 195
    known = {f"i{k:04d}": "contaminated" if k < 60 else "clean" for k in range(1_000)}
    (m,) = measured(table(acc=items), 1_000, contamination=known)
    assert m.contamination == "checked" and m.companion.n == 940
    assert m.companion.difference == pytest.approx(0.0104468, abs=1e-7)
    assert m.companion.difference_se == pytest.approx(0.0016113, abs=1e-7)


@pytest.mark.parametrize(
    ("scores", "n_attempted", "message"),
    [
        (table(acc=[(float("nan"),)]), 1, "item 'i0000' has the value nan"),
        (table(acc=[(1.0,), (1.0,)]), 1, "2 items scored, 1 were attempted"),
        (table(other=[(1.0,)]), 1, "scores of 'other', which scorer 'choice' has not"),
        (pa.concat_tables([table(acc=[(1.0,)])] * 2), 2, "'i0000' is one"),
    ],
)
def test_rows_that_contradict_the_plan_are_data_errors(scores, n_attempted, message):
    with pytest.raises(DataError, match=message):
        measured(scores, n_attempted)


def test_the_step_measures_every_benchmark_and_keeps_it(store):
    other = replace(BENCH, name="other", items_digest="j" * 64)
    rows = scores_of(BENCH, [1.0, 0.0, None]) + scores_of(BENCH, [1.0, 1.0, None], metric="acc_norm")
    stored = stored_run(store, 1, (BENCH, rows), (other, scores_of(other, [1.0, 1.0])), truncated=2)
    measurements = aggregate(store, stored.run_id)
    assert [(m.benchmark, m.metric, m.primary) for m in measurements] == [
        ("bench", "acc", True),
        ("bench", "acc_norm", False),
        ("other", "acc", True),
    ]
    assert (measurements[0].n, measurements[0].n_missing, measurements[0].n_output_truncated) == (2, 1, 2)
    assert store.catalog.measurements(stored.run_id) == measurements
    assert aggregate(store, stored.run_id) == measurements


def test_the_step_takes_the_latest_grader(store):
    stored = stored_run(store, 1, (BENCH, scores_of(BENCH, [1.0, 0.0])), grader="choice@1")
    store.scores.write(stored.run_id, BENCH.benchmark_id, "choice@2", scores_of(BENCH, [1.0, 1.0]))
    (m,) = aggregate(store, stored.run_id)
    assert (m.score, m.grader) == (1.0, "choice@2")


def test_a_run_without_scores_is_told_to_be_graded(store):
    store.catalog.save_checkpoint(checkpoint())
    store.catalog.save_benchmark(BENCH)
    bare = run(9)
    stored = store.catalog.create_run(replace(bare, request=replace(bare.request, benchmark_ids=(BENCH.benchmark_id,))))
    with pytest.raises(DataError, match="has no scores of 'bench'; grade it first"):
        aggregate(store, stored.run_id)
