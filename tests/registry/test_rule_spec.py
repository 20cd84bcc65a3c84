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
        ("{}", "", "at least 1"),
        ("{a: 1}", "margin: -0.1", "margin"),
        ("{a: 1}", "alpha: 5", "alpha"),
        ("{a: 1}", "direktion: lower", "close: 'direction'"),
    ],
)
def test_wrong_rules(tmp_path: Path, components: str, extra: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_rule_file(_write(tmp_path / "r.yaml", components, extra))
