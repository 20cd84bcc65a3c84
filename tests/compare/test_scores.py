"""Tables in, one comparison out: tests, adjustment, companions, rules, verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.compare import compare_scores
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.records import Comparison, from_json, to_json
from eval_tasks.scoring.registry import MetricInfo
from eval_tasks.stats.paired import Table, mcnemar_mid_p, newcombe10
from tests.compare.arms import LOSS, SIDES, arms, of_cells, rule, table

BETTER = (700, 120, 60, 120)
SAME = (780, 30, 30, 160)


def test_the_design_table_end_to_end():
    test = compare_scores([of_cells(40, 12, 3, 45)], SIDES).tests[0]
    assert (test.b, test.c, test.n_discordant, test.n_pairs, test.n_attempted) == (12, 3, 15, 100, 100)
    assert test.delta == pytest.approx(0.09) and test.score_a - test.score_b == pytest.approx(0.09)
    assert test.p == pytest.approx(0.021271, abs=1e-6) and test.p_exact == pytest.approx(0.03515625)
    assert test.ci95 == pytest.approx((0.01372, 0.16371), abs=5e-6)
    assert (test.q, test.verdict, test.compatibility, test.method) == (
        pytest.approx(test.p),
        "A better",
        "SCORE",
        "McNemar mid-p, Newcombe 10",
    )


def test_without_a_rule_there_is_no_verdict_and_all_is_exploratory():
    comparison = compare_scores([of_cells(*BETTER)], SIDES)
    assert comparison.verdict is None and comparison.exploratory and comparison.rule_met is None
    assert comparison.reason.startswith("no primary metric")
    assert comparison.tests[0].verdict == "A better"


def test_adjustment_is_over_all_tested_benchmarks_and_quarantined_ones_take_no_part():
    listed = [
        of_cells(40, 12, 3, 45, name="one"),
        of_cells(*SAME, name="two"),
        of_cells(*BETTER, name="three", not_tested="quarantined in A: score at chance"),
        of_cells(*SAME, name="four"),
    ]
    tests = compare_scores(listed, SIDES).tests
    assert [t.benchmark for t in tests] == ["one", "two", "three", "four"]
    assert tests[0].q == pytest.approx(3 * tests[0].p) and tests[0].verdict == "INDISTINGUISHABLE"
    shut = tests[2]
    assert shut.not_tested == "quarantined in A: score at chance"
    assert (shut.p, shut.q, shut.delta, shut.verdict, shut.inconclusive) == (None, None, None, "INDISTINGUISHABLE", "")


def test_chance_expectation_counts_attainable_sizes_of_the_tested():
    listed = [
        of_cells(50, 2, 2, 46, name="four discordant"),
        of_cells(50, 5, 1, 44, name="six discordant"),
        arms([1.0, 2.0, 3.5], [1.1, 2.0, 3.0], name="loss", info=LOSS),
        of_cells(*BETTER, name="shut", not_tested="quarantined"),
    ]
    assert compare_scores(listed, SIDES).n_expected_by_chance == pytest.approx(0.0 + 0.03125 + 0.05)


def test_nothing_discordant_is_indistinguishable_and_says_what_could_have_been_seen():
    few = compare_scores([of_cells(20, 0, 0, 5)], SIDES).tests[0]
    assert (few.p, few.delta, few.verdict, few.inconclusive) == (1.0, 0.0, "INDISTINGUISHABLE", "UNDERPOWERED")
    assert few.mde > 0.1 and few.n_needed > 25
    many = compare_scores([of_cells(8_000, 0, 0, 2_000)], SIDES).tests[0]
    assert many.inconclusive == "EQUIVALENT" and 0 < many.mde < 0.01


def test_all_right_all_wrong_and_one_item():
    for cell in ((50, 0, 0, 0), (0, 0, 0, 50), (1, 0, 0, 0), (0, 1, 0, 0)):
        test = compare_scores([of_cells(*cell)], SIDES).tests[0]
        assert test.p == pytest.approx(0.5 if cell[1] else 1.0)
        assert test.ci95[0] < test.ci95[1] and test.verdict == "INDISTINGUISHABLE"
    assert compare_scores([of_cells(1, 0, 0, 0)], SIDES).tests[0].se is None


def test_no_item_scored_in_both_is_not_tested():
    test = compare_scores([arms([1.0, None], [None, 0.0])], SIDES).tests[0]
    assert test.not_tested == "no item has a score in both runs" and test.n_attempted == 2 and test.p is None


def test_one_continuous_item_or_one_cluster_cannot_be_tested():
    one = compare_scores([arms([1.0], [0.5], info=LOSS)], SIDES).tests[0]
    assert one.p is None and one.delta == 0.5 and one.not_tested.startswith("one item only")
    a, b = table([1.0, 0.0, 1.0], clusters=["p"] * 3), table([0.0, 0.0, 1.0], clusters=["p"] * 3)
    clustered = compare_scores([arms(a, b, clustered=True)], SIDES).tests[0]
    assert clustered.p is None and clustered.not_tested.startswith("one cluster only")


def test_lower_is_better_turns_the_verdict_and_not_the_difference():
    rng = np.random.default_rng(2)
    base = rng.gamma(2, 0.5, 400)
    better = list(base - 0.05 + rng.normal(0, 0.1, 400))
    test = compare_scores([arms(better, list(base), metric="bits", info=LOSS)], SIDES).tests[0]
    assert test.delta < 0 and test.verdict == "A better" and not test.higher_is_better
    assert test.b is None and test.p_exact is None and test.n_discordant is None
    assert any(note.startswith("sign-flip permutation check: p = 0.0001") for note in test.notes)


def test_clusters_decide_where_they_are_declared():
    flips = [(1.0, 0.0)] * 12 + [(0.0, 1.0)] * 2
    a = [x for x, _ in flips] + [1.0] * 86
    b = [y for _, y in flips] + [1.0] * 86
    names = ["one passage"] * 12 + ["another"] * 2 + [f"p{k // 4}" for k in range(86)]
    plain = compare_scores([arms(table(a), table(b))], SIDES).tests[0]
    shared = compare_scores([arms(table(a, clusters=names), table(b, clusters=names), clustered=True)], SIDES).tests[0]
    assert plain.p < 0.02 and plain.verdict == "A better"
    assert shared.p > 0.2 and shared.verdict == "INDISTINGUISHABLE"
    assert shared.method.startswith("clustered pairs") and shared.p_exact == plain.p_exact
    assert f"mid-p on items, clusters ignored: {plain.p:.4g}" in shared.notes


def test_pooled_metric_compares_pooled_scores():
    info = MetricInfo(binary=False, summary="pooled")
    weights = [1.0, 3.0, 2.0, 2.0]
    a, b = table([1.0, 2 / 3, 0.5, 1.0], weights=weights), table([1.0, 1 / 3, 0.0, 1.0], weights=weights)
    test = compare_scores([arms(a, b, metric="inst_strict", info=info)], SIDES).tests[0]
    assert test.score_a == pytest.approx(6 / 8) and test.score_b == pytest.approx(4 / 8)
    assert test.delta == pytest.approx(2 / 8) and test.method == "paired t on difference of ratios"


def test_test_and_interval_that_disagree_say_so():
    test = compare_scores([of_cells(403, 7, 1, 89)], SIDES).tests[0]
    assert test.verdict == "A better" and test.ci95[0] < 0
    assert "the test and the interval disagree about zero: the test decides, the interval describes" in test.notes


def test_missing_items_widen_the_interval_and_hold_back_a_verdict_they_could_undo():
    a, b = (list(x) for x in ([1.0] * 52 + [0.0] * 48, [1.0] * 40 + [0.0] * 12 + [1.0] * 3 + [0.0] * 45))
    whole = compare_scores([arms(a, b)], SIDES).tests[0]
    lost = compare_scores([arms([*a, *[None] * 20], [*b, *[1.0] * 20])], SIDES).tests[0]
    assert whole.verdict == "A better" and lost.p == whole.p
    assert lost.ci95[0] == pytest.approx((100 * whole.ci95[0] - 20) / 120) and lost.n_attempted == 120
    assert lost.verdict == "INDISTINGUISHABLE"
    assert "not called: the missing items could undo the difference" in lost.notes


def test_overlapping_items_are_partial_with_full_scores_apart():
    a, b = table([1.0] * 30, ids=[f"i{k}" for k in range(30)]), table([1.0] * 30, ids=[f"i{k}" for k in range(10, 40)])
    test = compare_scores([arms(a, b, difference="items_digest differs (x in A, y in B)")], SIDES).tests[0]
    assert (test.compatibility, test.n_pairs, test.n_attempted) == ("PARTIAL", 20, 40)
    assert any("full scores are not comparable" in n and "items_digest differs" in n for n in test.notes)


def test_another_template_is_paired_and_says_so():
    pairs = of_cells(*BETTER, compatibility="PAIRED", difference="template_digest differs (x in A, y in B)")
    test = compare_scores([pairs], SIDES).tests[0]
    assert test.compatibility == "PAIRED" and any("absolute scores are not comparable" in n for n in test.notes)


def test_companion_is_the_same_test_on_clean_items():
    # all that A is better at is contaminated
    known = {f"i{k:05d}": "contaminated" if 700 <= k < 760 else "clean" for k in range(1_000)}
    test = compare_scores([of_cells(*BETTER, contamination=known, contamination_note="6.0% of items")], SIDES).tests[0]
    assert test.verdict == "A better" and test.contamination == "6.0% of items"
    clean = Table(both=700, b=60, c=60, neither=120)
    assert test.companion_delta == 0.0 and test.companion_p == mcnemar_mid_p(60, 60)
    assert test.companion_ci95 == pytest.approx(newcombe10(clean))
    assert any("the test reads differently: no difference shown instead of A higher" in note for note in test.notes)


def test_never_checked_has_no_companion():
    test = compare_scores([of_cells(*BETTER)], SIDES).tests[0]
    assert (test.contamination, test.companion_delta, test.companion_p) == ("never checked", None, None)


def test_a_called_benchmark_among_others_shows_its_selection_adjusted_interval():
    tests = compare_scores([of_cells(*BETTER, name="moved"), of_cells(*SAME, name="still")], SIDES).tests
    low, high = newcombe10(Table(both=700, b=120, c=60, neither=120), 0.975)
    assert tests[0].ci_fcr == pytest.approx((low, high)) and tests[1].ci_fcr is None
    assert tests[0].ci_fcr[0] < tests[0].ci95[0] < tests[0].ci95[1] < tests[0].ci_fcr[1]


def test_no_common_item_is_refused():
    with pytest.raises(NotComparableError, match="no item in common"):
        compare_scores([arms(table([1.0], ids=["x"]), table([1.0], ids=["y"]))], SIDES)


@pytest.mark.parametrize(
    ("kind", "cell", "fields", "verdict", "met"),
    [
        ("superiority", BETTER, {}, "A better", True),
        ("superiority", (700, 60, 120, 120), {}, "B better", False),
        ("superiority", SAME, {}, "INDISTINGUISHABLE", False),
        ("superiority_by_margin", BETTER, {"margin": 0.01}, "A better", True),
        ("superiority_by_margin", BETTER, {"margin": 0.05}, "INDISTINGUISHABLE", False),
        ("superiority_by_margin", (700, 60, 120, 120), {"margin": 0.01}, "B better", False),
        ("non_inferiority", SAME, {"margin": 0.05}, "INDISTINGUISHABLE", True),
        ("non_inferiority", SAME, {"margin": 0.01}, "INDISTINGUISHABLE", False),
        ("non_inferiority", BETTER, {"margin": 0.01}, "A better", True),
        ("non_inferiority", (700, 60, 120, 120), {"margin": 0.01}, "B better", False),
        ("non_inferiority", (700, 60, 120, 120), {"margin": 0.04}, "INDISTINGUISHABLE", False),
        ("point_and_p", BETTER, {"margin": 0.01, "alpha": 0.01}, "A better", True),
        ("point_and_p", BETTER, {"margin": 0.07, "alpha": 0.01}, "INDISTINGUISHABLE", False),
        ("point_and_p", (40, 12, 3, 45), {"margin": 0.01, "alpha": 0.01}, "INDISTINGUISHABLE", False),
    ],
)
def test_kinds_of_rules(kind, cell, fields, verdict, met):
    comparison = compare_scores([of_cells(*cell)], SIDES, rule=rule(kind, **fields))
    assert (comparison.verdict, comparison.rule_met) == (verdict, met)
    assert comparison.exploratory is False
    assert (comparison.inconclusive == "") == (verdict != "INDISTINGUISHABLE")
    assert (
        comparison.reason.endswith(f"{'is met' if met else 'is not met'}.") or "four times in five" in comparison.reason
    )


def test_the_margin_is_reached_exactly_by_a_point():
    comparison = compare_scores([of_cells(900, 30, 20, 50)], SIDES, rule=rule("point_and_p", margin=0.01, alpha=0.2))
    assert comparison.tests[0].delta == pytest.approx(0.01) and comparison.verdict == "A better"


def test_reasons_read_as_sentences():
    met = compare_scores([of_cells(*BETTER)], SIDES, rule=rule()).reason
    assert met == (
        "on bench acc, A is 6 points higher than B (A - B, 95 % interval 3.39 to 8.62 points; p = 6.8e-06; "
        "1,000 items); rule 'ship' (superiority, alpha 0.05) is met."
    )
    unclear = compare_scores([of_cells(*SAME)], SIDES, rule=rule(margin=0.01, kind="superiority_by_margin")).reason
    assert unclear == (
        "on bench acc, A is as high as B (A - B, 95 % interval -1.55 to 1.55 points; p = 1; 1,000 items); rule 'ship' "
        "(superiority by a margin of 1 point, alpha 0.05) is not met; a true difference of 2.17 points would have been "
        "found four times in five; about 4,707 items would settle 1 point."
    )


def test_equivalence_within_the_rules_margin():
    comparison = compare_scores([of_cells(*SAME)], SIDES, rule=rule("superiority_by_margin", margin=0.03))
    assert (comparison.verdict, comparison.inconclusive) == ("INDISTINGUISHABLE", "EQUIVALENT")
    assert "so any difference is smaller than 3 points" in comparison.reason


def test_a_late_rule_labels_everything_exploratory():
    late = replace(SIDES, exploratory_reason="rule 'ship' was registered later")
    comparison = compare_scores([of_cells(*BETTER)], late, rule=rule())
    assert comparison.exploratory and comparison.verdict == "A better"
    assert comparison.reason.startswith("exploratory, since rule 'ship' was registered later; on bench acc")


def test_a_rule_on_a_quarantined_benchmark_has_no_verdict():
    comparison = compare_scores([of_cells(*BETTER, not_tested="quarantined in B: range")], SIDES, rule=rule())
    assert comparison.verdict is None and comparison.rule_met is None
    assert "needs bench (quarantined in B: range), which was not tested" in comparison.reason


def test_composite_weighs_benchmarks_and_shows_all_components():
    listed = [of_cells(*BETTER, name="x"), of_cells(*SAME, name="y"), of_cells(*SAME, name="beside")]
    weighed = rule(components={"x": 0.75, "y": 0.25})
    comparison = compare_scores(listed, SIDES, rule=weighed)
    whole = comparison.composite
    assert whole.delta == pytest.approx(0.75 * 0.06) and whole.benchmark == "0.75 x + 0.25 y"
    variance = (0.75**2 * 0.1764 + 0.25**2 * 0.06) / 999
    assert whole.se == pytest.approx(np.sqrt(variance)) and whole.n_pairs == 2_000
    assert whole.verdict == comparison.verdict == "A better" and len(comparison.tests) == 3
    assert from_json(Comparison, to_json(comparison)) == comparison


def test_composite_shares_clusters_across_benchmarks():
    rng = np.random.default_rng(8)
    names = [f"p{k % 25}" for k in range(200)]
    a, b = (list(rng.integers(0, 2, 200).astype(float)) for _ in "ab")
    arm = {"a": table(a, clusters=names), "b": table(b, clusters=names), "clustered": True}
    both = [arms(arm["a"], arm["b"], name=name, clustered=True) for name in ("x", "y")]
    whole = compare_scores(both, SIDES, rule=rule(components={"x": 0.5, "y": 0.5})).composite
    alone = compare_scores([both[0]], SIDES).tests[0]
    assert whole.se == pytest.approx(alone.se), "the same passages twice are no new evidence"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"components": {}}, "names no benchmark"),
        ({"components": {"bench": 0.5}}, "weights sum to 0.5, not 1"),
        ({"components": {"bench": 1.5, "other": -0.5}}, "weight -0.5 of 'other'"),
        ({"margin": -0.01}, "margin -0.01"),
        ({"alpha": 0.0}, r"alpha 0\.0"),
        ({"kind": "non_inferiority"}, "needs a margin above 0"),
        ({"components": {"bnch": 1.0}}, "names benchmark 'bnch'.*close: 'bench'"),
        ({"direction": "lower"}, "says lower is better, but higher is better for 'acc'"),
    ],
)
def test_rules_that_cannot_decide_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        compare_scores([of_cells(*SAME)], SIDES, rule=rule(**fields))


def test_units_are_not_added():
    listed = [
        of_cells(*SAME, name="x"),
        arms([1.0, 2.0], [1.0, 2.5], name="y", info=replace(LOSS, higher_is_better=True)),
    ]
    with pytest.raises(UserError, match="different units"):
        compare_scores(listed, SIDES, rule=rule(components={"x": 0.5, "y": 0.5}))


def test_alpha_outside_its_range_is_refused():
    with pytest.raises(UserError, match=r"alpha 1\.5"):
        compare_scores([of_cells(*SAME)], SIDES, alpha=1.5)


def test_notes_of_the_pair_reach_every_test():
    sides = replace(SIDES, notes=("cross-environment: the runs ran on different environments",))
    tests = compare_scores([of_cells(*SAME, name="x"), of_cells(*SAME, name="y")], sides).tests
    assert all(test.notes[0].startswith("cross-environment") for test in tests)


def test_equal_arms_are_rarely_called_over_a_family():
    """With every null true, BH keeps the chance of any call at alpha; 200 families: 4 SE are .062."""
    rng = np.random.default_rng(12)
    called = 0
    for _ in range(200):
        listed = []
        for name in ("u", "v", "w"):
            b, c = rng.multinomial(300, [0.05, 0.05, 0.9])[:2]
            listed.append(of_cells(200, int(b), int(c), 100 - int(b + c), name=name))
        called += any(t.verdict != "INDISTINGUISHABLE" for t in compare_scores(listed, SIDES).tests)
    assert called / 200 < 0.05 + 0.062


MIRROR = {"A better": "B better", "B better": "A better", "INDISTINGUISHABLE": "INDISTINGUISHABLE"}


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.integers(0, 150)] * 4).filter(lambda cell: sum(cell) > 1),
    st.sampled_from(["superiority", "superiority_by_margin", "point_and_p"]),
    st.sampled_from([0.0, 0.01, 0.1]),
)
def test_swapping_the_arms_mirrors_the_verdict(cell, kind, margin):
    both, b, c, neither = cell
    decided = rule(kind, margin=margin)
    one = compare_scores([of_cells(both, b, c, neither)], SIDES, rule=decided)
    other = compare_scores([of_cells(both, c, b, neither)], SIDES, rule=decided)
    assert other.verdict == MIRROR[one.verdict] and other.tests[0].verdict == MIRROR[one.tests[0].verdict]
    assert other.inconclusive == one.inconclusive
    assert one.verdict == "INDISTINGUISHABLE" or one.inconclusive == ""
