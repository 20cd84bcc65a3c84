"""Rules over one, several and weighted benchmarks: adjustment, levels, and what the table then says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eval_tasks.compare import compare_scores
from eval_tasks.errors import UserError
from eval_tasks.records import Comparison, from_json, to_json
from eval_tasks.stats.paired import Table, newcombe10
from tests.compare.arms import LOSS, SIDES, arms, of_cells, rule

SLIGHT = (460, 41, 21, 478)  # p = .0115
CLEAR = (430, 70, 20, 480)
SAME = (480, 20, 20, 480)
WORSE = (430, 20, 70, 480)


def compared(*cells, **fields):
    listed = [of_cells(*cell, name=f"b{k}") for k, cell in enumerate(cells)]
    return compare_scores(listed, SIDES, rule=rule(**fields))


def several(*cells, kind="superiority", **fields):
    names = tuple(f"b{k}" for k in range(len(cells)))
    return compared(*cells, kind=kind, components={}, primary=names, **({"multiplicity": "holm"} | fields))


def test_one_primary_p_is_not_adjusted_however_many_benchmarks_stand_beside_it():
    cells = (SLIGHT, *[SAME] * 9)
    alone = compared(*cells, components={"b0": 1.0})
    test = alone.tests[0]
    assert (test.q, test.verdict, test.primary, test.adjusted_by) == (test.p, "A better", True, "none")
    assert alone.verdict == "A better" and test.ci_fcr is None
    assert all(t.adjusted_by == "bh" and not t.primary for t in alone.tests[1:])
    suite = compared(*cells, components={"b0": 1.0}, multiplicity="bh")
    assert suite.verdict == "INDISTINGUISHABLE" and suite.tests[0].q == pytest.approx(10 * test.p)
    holm = compared(*cells, components={"b0": 1.0}, multiplicity="holm")
    assert holm.tests[0].q == pytest.approx(10 * test.p) and holm.tests[0].adjusted_by == "holm"


def test_the_verdict_of_the_table_is_the_rules():
    comparison = compared(CLEAR, kind="superiority_by_margin", margin=0.2, components={"b0": 1.0})
    assert comparison.verdict == comparison.tests[0].verdict == "INDISTINGUISHABLE"
    assert comparison.inconclusive == comparison.tests[0].inconclusive == "EQUIVALENT"


def test_several_primary_benchmarks_step_down_by_holm():
    comparison = several(SLIGHT, CLEAR, SAME)
    p = [t.p for t in comparison.tests]
    assert [t.q for t in comparison.tests] == pytest.approx([2 * p[0], 3 * p[1], 1.0])
    assert comparison.verdict == "A better" and comparison.rule_met and comparison.composite is None
    assert comparison.reason.startswith("on b0 acc A is better (A - B = 2 points, 98.3 % interval ")
    assert "p adjusted by Holm) is met" in comparison.reason
    assert from_json(Comparison, to_json(comparison)) == comparison


def test_holm_keeps_back_what_one_test_alone_would_claim():
    cells = (SLIGHT, SAME, SAME, SAME, SAME)
    assert several(*cells).verdict == "INDISTINGUISHABLE"
    assert several(*cells, multiplicity="none").verdict == "A better"
    assert several(*cells).inconclusive == "UNDERPOWERED"
    assert "would have been found four times in five: " in several(*cells).reason


def test_primary_benchmarks_that_disagree_decide_nothing():
    comparison = several(CLEAR, WORSE)
    assert (comparison.verdict, comparison.inconclusive) == ("INDISTINGUISHABLE", "")
    assert comparison.rule_met is False and comparison.reason.endswith("is not met: the benchmarks disagree.")
    assert several(SAME, WORSE).verdict == "B better"


def test_intervals_of_several_are_bonferronis():
    """Both intervals of a margin rule hold together: each at 1 - alpha / 2."""
    low, _ = newcombe10(Table(both=430, b=70, c=20, neither=480), 0.975)
    below = several(CLEAR, SAME, kind="superiority_by_margin", margin=low - 1e-6)
    above = several(CLEAR, SAME, kind="superiority_by_margin", margin=low + 1e-6)
    assert (below.verdict, above.verdict) == ("A better", "INDISTINGUISHABLE")


def test_not_worse_must_hold_on_every_one():
    rules = {"kind": "non_inferiority", "margin": 0.03}
    every = several(SAME, SAME, **rules)
    assert (every.verdict, every.rule_met) == ("INDISTINGUISHABLE", True)
    assert several(CLEAR, SAME, **rules).verdict == "A better"
    one_fails = several(CLEAR, WORSE, **rules)
    assert one_fails.rule_met is False and one_fails.verdict != "A better"


def test_several_are_equivalent_when_each_is():
    comparison = several(SAME, SAME, kind="superiority_by_margin", margin=0.05)
    assert comparison.inconclusive == "EQUIVALENT"
    assert "any difference is smaller than 5 points on each" in comparison.reason
    assert several(SAME, SLIGHT, kind="superiority_by_margin", margin=0.025).inconclusive == "UNDERPOWERED"


def test_units_may_differ_without_a_margin():
    loss = arms([1.0, 2.0, 3.0], [1.1, 2.3, 3.2], name="loss", info=replace(LOSS, higher_is_better=True))
    listed = [of_cells(*SAME, name="x"), loss]
    both = rule(components={}, primary=("loss", "x"), multiplicity="holm")
    assert compare_scores(listed, SIDES, rule=both).verdict == "INDISTINGUISHABLE"
    with pytest.raises(UserError, match=r"different units \(bits per byte, fraction\); a margin has one"):
        compare_scores(listed, SIDES, rule=replace(both, margin=0.1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"primary": ("b0", "b1")}, "both components and primary"),
        ({"components": {}, "primary": ("b0", "b0")}, "primary twice in b0, b0"),
        ({"components": {}, "primary": ("b0", "nothere")}, "names benchmark 'nothere'"),
        ({"components": {"b0": 1.0}, "seeds": 0}, "0 seeds"),
        ({"components": {"b0": float("nan")}}, "weight nan"),
        ({"components": {"b0": 1.0}, "margin": float("nan")}, "margin nan"),
    ],
)
def test_rules_over_several_that_cannot_decide_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        compare_scores([of_cells(*SAME, name="b0"), of_cells(*SAME, name="b1")], SIDES, rule=rule(**fields))


def test_required_seeds_are_those_of_the_smaller_arm():
    asked = rule(components={"b0": 1.0}, seeds=3)
    listed = [of_cells(*CLEAR, name="b0")]
    few = compare_scores(listed, replace(SIDES, further_a=("x", "y"), further_b=("z",)), rule=asked)
    assert few.verdict is None and "there are 3 of A and 2 of B" in few.reason
    assert (
        compare_scores(listed, replace(SIDES, further_a=("x", "y"), further_b=("z", "w")), rule=asked).verdict
        == "A better"
    )


def test_lower_is_better_decides_for_the_lower_arm():
    rng = np.random.default_rng(4)
    base = rng.gamma(2, 0.5, 400)
    lower = arms(list(base - 0.05 + rng.normal(0, 0.1, 400)), list(base), name="text", metric="bits", info=LOSS)
    decided = rule(metric="bits", components={"text": 1.0}, direction="lower")
    assert compare_scores([lower], SIDES, rule=decided).verdict == "A better"
    with pytest.raises(UserError, match="register it with direction: lower"):
        compare_scores([lower], SIDES, rule=replace(decided, direction="higher"))


def test_holm_keeps_false_claims_over_several_primaries_at_its_level():
    """Four primary benchmarks, every null true; 400 families: 4 SE are .044. Without adjustment it is about .15."""
    rng = np.random.default_rng(21)
    claims = {"holm": 0, "none": 0}
    for _ in range(400):
        cells = [(700, int(b), int(c), 300 - int(b + c)) for b, c in rng.multinomial(300, [0.05, 0.05, 0.9], 4)[:, :2]]
        for method in claims:
            claims[method] += several(*cells, multiplicity=method).verdict != "INDISTINGUISHABLE"
    assert claims["holm"] / 400 < 0.05 + 0.044
    assert claims["none"] / 400 > 0.05 + 0.044
