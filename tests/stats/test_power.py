"""What a comparison could have found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as sps

from eval_tasks.stats.power import (
    discordance,
    mde_from_se,
    paired_items_needed,
    paired_mde,
    unpaired_items_needed,
    unpaired_mde,
)


def test_published_figures():
    # Connor 1987's formula and the two-sample one at alpha .05, power .8, accuracy .82 (statistics.md).
    assert [round(100 * unpaired_mde(n, 0.82), 2) for n in (500, 2_000, 10_000)] == [6.81, 3.40, 1.52]
    assert round(unpaired_items_needed(0.01, 0.82)) == 23_170
    assert round(paired_items_needed(0.01, 0.05)) == 3_922
    assert round(paired_items_needed(0.01, 0.10)) == 7_847


def test_plan_of_the_oracle(oracle):
    for row in oracle["plan"]:
        assert unpaired_mde(row["n"], 0.82) == pytest.approx(row["mde_unp"], abs=1e-12)
        for psi in (0.05, 0.1, 0.15, 0.2):
            assert paired_mde(row["n"], psi) == pytest.approx(row[f"paired_{psi:g}"], abs=1e-12)
    needed = oracle["n_for_1pp"]
    for psi in (0.02, 0.05, 0.1, 0.15, 0.2):
        assert paired_items_needed(0.01, psi) == pytest.approx(needed[f"paired_{psi:g}"])
    assert unpaired_items_needed(0.01, 0.82) == pytest.approx(needed["unpaired"])


def test_mde_and_items_needed_are_each_others_inverse():
    assert paired_items_needed(paired_mde(1_319, 0.08), 0.08) == pytest.approx(1_319)


def test_no_discordant_item_is_not_a_discordance_of_zero():
    # Clopper and Pearson 1934: the upper 95 % bound of 0 of n is 1 - .05^(1/n).
    assert discordance(0, 500) == pytest.approx(1 - 0.05 ** (1 / 500))
    assert paired_mde(500, discordance(0, 500)) > 0.01
    assert discordance(40, 500) == 0.08
    assert discordance(3, 3) == 1.0


def test_mde_never_exceeds_what_is_possible():
    assert paired_mde(1, 0.5) == 1.0
    for n in (4, 10, 50):
        assert 0 < paired_mde(n, 0.01) <= 1.0


def test_mde_from_a_standard_error_of_the_oracle(oracle):
    for row in oracle["verdict_example"]["same_scale"]:
        assert mde_from_se(row["se_total"], row["df"]) == pytest.approx(row["mde80"], abs=1e-9)
    for row in oracle["verdict_example"]["naive"]:
        assert mde_from_se(row["se_total"], math.inf) == pytest.approx(row["mde80"], abs=1e-9)


def test_mcnemar_finds_the_mde_four_times_in_five():
    """Exact power at the stated MDE: discordant ~ Binomial(n, psi), b ~ Binomial(discordant, share)."""
    from eval_tasks.stats.paired import mcnemar_mid_p

    n, psi = 1_000, 0.08
    delta = paired_mde(n, psi)
    share = (psi + delta) / (2 * psi)
    power = 0.0
    for m in range(45, 121):
        b = np.arange(m + 1)
        found = np.array([mcnemar_mid_p(int(x), int(m - x)) <= 0.05 for x in b])
        power += sps.binom.pmf(m, n, psi) * sps.binom.pmf(b, m, share)[found].sum()
    assert power == pytest.approx(0.8, abs=0.02)
