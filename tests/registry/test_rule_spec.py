from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.registry import load_rule_file


def _write(path: Path, components: str, extra: str = "") -> Path:
    path.write_text(f"name: ship\nkind: superiority\nmetric: acc\ncomponents: {components}\n{extra}", "utf-8")
    return path


def test_a_rule_is_a_record_whose_id_ignores_order_and_time(tmp_path: Path) -> None:
    first = load_rule_file(_write(tmp_path / "a.yaml", "{b: 0.25, a: 0.75}")).record("2026-01-01T00:00:00Z")
    second = load_rule_file(_write(tmp_path / "b.yaml", "{a: 0.75, b: 0.25}")).record("2026-01-02T00:00:00Z")
    assert first.components == {"a": 0.75, "b": 0.25}
    assert first.rule_id == second.rule_id


@pytest.mark.parametrize(
    ("components", "extra", "message"),
    [
        ("{a: 0.5}", "", "add up to 1, not to 0.5"),
        ("{a: 1.5, b: -0.5}", "", "above 0"),
        ("{}", "", "give either components"),
        ("{a: 1}", "primary: [a, b]", "give either components"),
        ("{}", "primary: [a]", "one primary benchmark is written as components"),
        ("{}", "primary: [a, b, a]", "a benchmark is primary once"),
        ("{a: 1}", "seeds: 0", "seeds"),
        ("{a: 1}", "margin: .inf", "margin"),
        ("{a: 1}", "margin: .nan", "margin"),
        ("{a: .nan}", "", "above 0"),
        ("{a: 1}", "multiplicity: bonferroni", "multiplicity"),
        ("{a: 1}", "margin: -0.1", "margin"),
        ("{a: 1}", "alpha: 5", "alpha"),
        ("{a: 1}", "direktion: lower", "close: 'direction'"),
    ],
)
def test_wrong_rules(tmp_path: Path, components: str, extra: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_rule_file(_write(tmp_path / "r.yaml", components, extra))


def test_several_primary_benchmarks_are_adjusted_by_holm_and_one_is_not(tmp_path: Path) -> None:
    one = load_rule_file(_write(tmp_path / "a.yaml", "{a: 1}")).record("")
    assert (one.multiplicity, one.seeds, one.primary, one.benchmarks) == ("none", 1, (), ("a",))
    several = load_rule_file(_write(tmp_path / "b.yaml", "{}", "primary: [b, a]\nseeds: 3")).record("")
    assert (several.multiplicity, several.seeds, several.benchmarks) == ("holm", 3, ("a", "b"))
    suite = load_rule_file(_write(tmp_path / "c.yaml", "{a: 1}", "multiplicity: bh")).record("")
    assert suite.multiplicity == "bh" and suite.rule_id != one.rule_id


def test_non_inferiority_needs_a_margin(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("name: ship\nkind: non_inferiority\nmetric: acc\ncomponents: {a: 1.0}\n", "utf-8")
    with pytest.raises(UserError, match="non_inferiority needs a margin above 0"):
        load_rule_file(path)
