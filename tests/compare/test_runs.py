"""Two runs of a real store, compared and kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.compare.compatibility import compatibility
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import DecisionRule, Sampling
from eval_tasks.report import ReportView, report_html, terminal_text
from eval_tasks.store import Store
from tests.compare.arms import cells, rule
from tests.compare.stored import scores_of, stored_run
from tests.store.samples import benchmark

BENCH = benchmark(name="bench")
A, B = cells(40, 12, 3, 45)
EARLY, LATE = "2025-12-31T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def two_runs(store: Store, a=A, b=B, in_a=BENCH, in_b=BENCH, **changes):
    first = stored_run(store, 1, (in_a, scores_of(in_a, a)), **changes)
    second = stored_run(store, 2, (in_b, scores_of(in_b, b)), **changes)
    return first.run_id, second.run_id


def test_two_runs_are_compared_and_kept(store):
    a, b = two_runs(store)
    comparison = compare(store, a, b)
    test = comparison.tests[0]
    assert (test.compatibility, test.b, test.c, test.metric) == ("SCORE", 12, 3, "acc")
    assert test.p == pytest.approx(0.021271, abs=1e-6)
    assert (comparison.label_a, comparison.label_b) == ("tiny step 100", "tiny step 200")
    assert comparison.reason.startswith("no primary metric")
    assert store.catalog.comparison(comparison.comparison_id) == comparison


def registered(store: Store, at: str = EARLY, **fields: Any) -> DecisionRule:
    return store.catalog.save_rule(rule(registered_at=at, **fields))


def test_a_rule_registered_before_the_run_binds(store):
    a, b = two_runs(store)
    comparison = compare(store, a, b, rule=registered(store))
    assert (comparison.verdict, comparison.exploratory, comparison.rule_met) == ("A better", False, True)


@pytest.mark.parametrize("at", [LATE, "2026-01-31T12:00:01", "2026-01-31T10:30:00-02:00"])
def test_a_rule_registered_later_is_exploratory(store, at):
    a, b = two_runs(store)
    comparison = compare(store, a, b, rule=registered(store, at))
    assert comparison.exploratory and f"was registered at {at[:10]}" in comparison.reason
    assert comparison.verdict == "A better" and store.catalog.comparison(comparison.comparison_id).exploratory


def test_a_rule_that_claims_a_time_and_was_never_registered_is_exploratory(store):
    a, b = two_runs(store)
    comparison = compare(store, a, b, rule=rule(registered_at=EARLY))
    assert comparison.exploratory and "was never registered" in comparison.reason
    assert comparison.rule.registered_at == ""


def test_a_rule_changed_since_it_was_registered_is_exploratory(store):
    a, b = two_runs(store)
    kept = registered(store, margin=0.01)
    comparison = compare(store, a, b, rule=replace(kept, margin=0.0, alpha=0.1))
    assert comparison.exploratory and comparison.verdict == "A better"
    assert "was changed since it was registered (alpha, margin)" in comparison.reason
    with pytest.raises(UserError, match=r"name 'ship' is registered with other content \(margin differ\)"):
        registered(store, margin=0.02)


def test_a_rule_that_asks_for_seeds_gives_one_run_an_arm_no_verdict(store):
    a, b = two_runs(store)
    comparison = compare(store, a, b, rule=registered(store, seeds=3))
    assert comparison.verdict is None and comparison.rule_met is None and not comparison.exploratory
    assert "asks for 3 runs of each arm, trained with their own seeds, and there is 1 of A and 1 of B" in (
        comparison.reason
    )


def test_one_grader_scores_both_arms(store):
    first = stored_run(store, 1, (BENCH, scores_of(BENCH, A)), grader="choice@1")
    second = stored_run(store, 2, (BENCH, scores_of(BENCH, B)), grader="choice@2")
    with pytest.raises(NotComparableError, match=r"'choice@1'.*'choice@2'.*regrade"):
        compare(store, first.run_id, second.run_id)
    store.scores.write(second.run_id, BENCH.benchmark_id, "choice@1", scores_of(BENCH, A))
    assert compare(store, first.run_id, second.run_id).tests[0].n_discordant == 0


def test_another_template_is_paired(store):
    other = replace(BENCH, version="2", template_digest="u" * 64)
    test = compare(store, *two_runs(store, in_b=other)).tests[0]
    assert test.compatibility == "PAIRED"
    assert any(
        note.startswith("PAIRED: template_digest differs (tttttttttttt in A, uuuuuuuuuuuu in B)") for note in test.notes
    )


def test_other_items_that_overlap_are_partial(store):
    other = replace(BENCH, version="2", items_digest="j" * 64)
    first = stored_run(store, 1, (BENCH, scores_of(BENCH, A)))
    shifted = scores_of(other, B[:80], item_ids=[f"i{k:04d}" for k in range(50, 130)])
    second = stored_run(store, 2, (other, shifted))
    found = compare(store, first.run_id, second.run_id)
    test = found.tests[0]
    assert (test.compatibility, test.n_pairs, test.n_attempted) == ("PARTIAL", 50, 130)
    said = (
        "PARTIAL: tested on the 50 items both have; the full scores are not comparable: A 0.5200 on 100 items, B 0.53"
    )
    assert test.notes[0].startswith(said) and "items_digest differs" in test.notes[0]
    view = ReportView(comparison=found)
    assert said[:80] in terminal_text(view, width=400) and said[:80] in report_html(view)


def test_nothing_in_common_is_refused_naming_the_digest(store):
    other = replace(BENCH, version="2", items_digest="j" * 64)
    first = stored_run(store, 1, (BENCH, scores_of(BENCH, A)))
    second = stored_run(store, 2, (other, scores_of(other, [1.0, 0.0], item_ids=["x", "y"])))
    with pytest.raises(
        NotComparableError, match=r"bench: items_digest differs \(iiiiiiiiiiii in A, jjjjjjjjjjjj in B\)"
    ):
        compare(store, first.run_id, second.run_id)
    assert store.catalog.comparisons() == []


def test_runs_without_a_common_benchmark_are_refused(store):
    other = replace(BENCH, name="other", items_digest="j" * 64)
    with pytest.raises(NotComparableError, match=r"share no benchmark: \['bench'\] against \['other'\]"):
        compare(store, *two_runs(store, in_b=other))


def test_a_quarantined_number_is_not_compared(store):
    a, b = two_runs(store)
    shut = [replace(m, quarantined=True, quarantine_reason="below chance") for m in aggregate(store, b)]
    store.catalog.save_measurements(b, shut)
    comparison = compare(store, a, b, rule=registered(store))
    assert comparison.tests[0].not_tested == "quarantined in B: below chance" and comparison.tests[0].p is None
    assert comparison.verdict is None


def test_a_quarantine_stands_when_its_benchmark_is_registered_under_another_name_too(store):
    a, b = two_runs(store)
    shut = [replace(m, quarantined=True, quarantine_reason="below chance") for m in aggregate(store, b)]
    store.catalog.save_measurements(b, shut)
    store.catalog.save_benchmark(replace(BENCH, name="bench-again"))
    (test,) = compare(store, a, b).tests
    assert (test.benchmark, test.not_tested) == ("bench-again", "quarantined in B: below chance")


def test_clusters_are_those_of_the_benchmark(store):
    clustered = replace(BENCH, cluster_key="passage")
    rows = [
        [replace(row, cluster=f"p{k // 4}") for k, row in enumerate(scores_of(clustered, values))] for values in (A, B)
    ]
    first, second = (stored_run(store, k + 1, (clustered, rows[k])) for k in (0, 1))
    assert compare(store, first.run_id, second.run_id).tests[0].method == "clustered pairs, CR2, t(24)"


def test_strata_are_those_of_the_benchmark_and_give_way_to_clusters(store):
    """80 items of subject x that A gained and 80 of y that it lost: within subjects nothing varies but a few."""
    a_right, b_right = [1.0] * 80 + [0.0] * 80 + [1.0] * 4, [0.0] * 80 + [1.0] * 80 + [1.0] * 4
    subjects = ["x"] * 82 + ["y"] * 82
    found = {}
    for k, keys in enumerate(({}, {"stratum_key": "s"}, {"stratum_key": "s", "cluster_key": "c"})):
        bench = benchmark(name=f"strata-{k}", items_digest=f"{k:064x}", **keys)
        a, b = (
            stored_run(
                store,
                10 * k + side,
                (
                    bench,
                    [replace(row, stratum=s, cluster=s) for row, s in zip(scores_of(bench, v), subjects, strict=True)],
                ),
            )
            for side, v in ((1, a_right), (2, b_right))
        )
        (found[k],) = compare(store, a.run_id, b.run_id).tests
    plain, inside, clustered = found.values()
    assert (inside.p, inside.ci95, inside.delta) == (plain.p, plain.ci95, plain.delta)
    assert inside.se < plain.se / 3 and clustered.method.startswith("clustered")


def test_companions_need_every_corpus_of_either_checkpoint(store):
    first = stored_run(store, 1, (BENCH, scores_of(BENCH, A)), corpora=("web",))
    second = stored_run(store, 2, (BENCH, scores_of(BENCH, B)), corpora=("books",))
    web = {f"i{k:04d}": "contaminated" if 40 <= k < 52 else "clean" for k in range(100)}
    store.catalog.save_contamination(BENCH.benchmark_id, "web", "13-gram@1", web, LATE)
    assert compare(store, first.run_id, second.run_id).tests[0].contamination == "never checked"
    books = {f"i{k:04d}": "not_checkable" if k == 0 else "clean" for k in range(100)}
    store.catalog.save_contamination(BENCH.benchmark_id, "books", "13-gram@1", books, LATE)
    test = compare(store, first.run_id, second.run_id).tests[0]
    assert test.contamination.startswith("12.0% of items in books, web, checked 2026-02-01")
    assert test.companion_delta == pytest.approx(-3 / 87)


def test_a_rules_metric_takes_the_place_of_the_primary_one(store):
    runs = []
    for number, values in ((1, A), (2, B)):
        rows = scores_of(BENCH, values) + scores_of(BENCH, B, metric="acc_norm")
        runs.append(stored_run(store, number, (BENCH, rows)).run_id)
    by_norm = compare(store, *runs, rule=rule(metric="acc_norm", registered_at=EARLY))
    assert by_norm.tests[0].metric == "acc_norm" and by_norm.verdict == "INDISTINGUISHABLE"
    primary = compare(store, *runs, rule=rule(metric="primary", registered_at=EARLY))
    assert primary.tests[0].metric == "acc" and primary.verdict == "A better"
    with pytest.raises(UserError, match="has no metric 'acc_nrm'; close: 'acc_norm'"):
        compare(store, *runs, rule=rule(metric="acc_nrm", registered_at=EARLY))


def test_what_varied_is_named_and_nothing_unmeasured_is_claimed(store):
    a, b = two_runs(store)
    sources = compare(store, a, b).sources_of_variance
    assert list(sources) == ["sampling", "engine", "environment", "training seed"]
    assert sources["engine"].startswith("not yet measured") and sources["environment"].startswith("unknown")
    assert "two checkpoints of one training run, not of recipes" in sources["training seed"]


def test_environments_that_differ_are_flagged(store):
    first = stored_run(store, 1, (BENCH, scores_of(BENCH, A)), env_fingerprint="e1")
    second = stored_run(store, 2, (BENCH, scores_of(BENCH, B)), env_fingerprint="e2", training_run="other")
    comparison = compare(store, first.run_id, second.run_id)
    assert comparison.tests[0].notes[0].startswith("cross-environment")
    assert comparison.sources_of_variance["environment"].startswith("differs (e1 in A, e2 in B)")
    assert "not answerable without a seed study" in comparison.sources_of_variance["training seed"]


def test_unknown_runs_are_user_errors(store):
    with pytest.raises(UserError):
        compare(store, "nope", "nowhere")


def test_a_sampled_arm_is_paired_by_its_item_means(store):
    greedy = BENCH
    drawn = replace(greedy, version="2", sampling=Sampling(temperature=1.0, samples=2, reason="test"))
    run_a = stored_run(store, 1, (drawn, scores_of(drawn, [0.5, 1.0, 0.0, 0.5] * 10)))
    run_b = stored_run(store, 2, (greedy, scores_of(greedy, [0.0, 1.0, 0.0, 1.0] * 10)))
    for a, b in ((run_a, run_b), (run_b, run_a)):
        (test,) = compare(store, a.run_id, b.run_id).tests
        assert (test.compatibility, test.n_discordant) == ("PAIRED", None)
        assert test.delta == 0.0
    assert "sampling differs" in compatibility(drawn, greedy)[1]
    assert compatibility(drawn, replace(drawn, version="3")) == ("SCORE", "")


def test_digests_decide_how_versions_compare():
    assert compatibility(BENCH, replace(BENCH, version="2")) == ("SCORE", "")
    both = replace(BENCH, items_digest="j" * 64, scorer_digest="k" * 64)
    level, words = compatibility(BENCH, both)
    assert level == "PARTIAL" and "items_digest differs" in words and "scorer_digest differs" in words
