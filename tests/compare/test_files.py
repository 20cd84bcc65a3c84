"""Plain files of scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_tasks.compare import compare_files
from eval_tasks.errors import NotComparableError, UserError
from tests.compare.arms import cells, rule


def write(path: Path, rows: list) -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n", "utf-8")
    return path


def pair_of_files(tmp_path: Path, both: int, b: int, c: int, neither: int, **fields):
    paths = []
    for name, values in zip(("new", "old"), cells(both, b, c, neither), strict=True):
        rows = [{"item_id": f"i{k}", "score": v} | fields for k, v in enumerate(values)]
        paths.append(write(tmp_path / f"{name}.jsonl", rows))
    return paths


def test_two_files_give_the_whole_comparison(tmp_path):
    comparison = compare_files(*pair_of_files(tmp_path, 40, 12, 3, 45))
    test = comparison.tests[0]
    assert (comparison.label_a, comparison.label_b, comparison.verdict) == ("new", "old", None)
    assert test.p == pytest.approx(0.021271, abs=1e-6) and test.verdict == "A better" and test.benchmark == "scores"
    assert comparison.run_a != comparison.run_b


def test_order_of_lines_blank_lines_and_bools_do_not_matter(tmp_path):
    a, b = pair_of_files(tmp_path, 4, 3, 0, 2)
    turned = [line.replace("1.0", "true").replace("0.0", "false") for line in reversed(a.read_text().splitlines())]
    other = write(tmp_path / "turned.jsonl", ["", *turned, "  "])
    assert compare_files(other, b).tests == compare_files(a, b).tests


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    rows = [json.dumps({"item_id": f"a\u2028b\x85{k}", "score": k % 2}, ensure_ascii=False) for k in range(4)]
    (test,) = compare_files(write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", rows)).tests
    assert (test.n_pairs, test.n_discordant) == (4, 0)


def test_a_rule_decides_but_stays_exploratory(tmp_path):
    files = pair_of_files(tmp_path, 40, 12, 3, 45, benchmark="bench")
    comparison = compare_files(*files, rule=rule())
    assert comparison.verdict == "A better" and comparison.exploratory
    assert comparison.reason.startswith("exploratory, since plain files cannot show")
    assert comparison.tests[0].metric == "acc"


def test_clusters_and_losses(tmp_path):
    a = write(tmp_path / "a", [{"item_id": k, "score": 1.5 + k % 3, "cluster": k // 2} for k in range(8)])
    b = write(tmp_path / "b", [{"item_id": k, "score": 1.75 + k % 2, "cluster": k // 2} for k in range(8)])
    test = compare_files(a, b, rule=None).tests[0]
    assert test.method == "clustered differences, CR2, t(3)" and test.unit == "score"


def test_a_null_score_is_a_missing_one(tmp_path):
    a = write(tmp_path / "a", [{"item_id": "x", "score": None}, {"item_id": "y", "score": 1}])
    b = write(tmp_path / "b", [{"item_id": "x", "score": 1}, {"item_id": "y", "score": 0}])
    test = compare_files(a, b).tests[0]
    assert (test.n_pairs, test.n_attempted) == (1, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no scores"),
        (["{"], "line 1: not JSON"),
        (["[1]"], "line 1: expected an object"),
        ([{"item_id": "x", "score": 1}, {"item": "y", "score": 1}], "line 2: no field 'item_id'; close: 'item'"),
        ([{"item_id": "x", "score": 1, "clster": "c"}], "line 1: unknown field 'clster'; close: 'cluster'"),
        (['{"item_id": "x", "score": NaN}'], "line 1: score nan of item 'x'"),
        (['{"item_id": "x", "score": -Infinity}'], "line 1: score -inf"),
        ([{"item_id": "x", "score": "1"}], "line 1: score '1'"),
        ([{"item_id": None, "score": 1}], "line 1: item_id is null"),
        ([{"item_id": ["x"], "score": 1}], "line 1: item_id"),
        ([{"item_id": "x", "score": 1}, {"item_id": "x", "score": 0}], "item_id 'x' of benchmark 'scores' is there 2"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(tmp_path, rows, message):
    good = write(tmp_path / "good.jsonl", [{"item_id": "x", "score": 1}])
    bad = tmp_path / "bad.jsonl"
    bad.write_text("", "utf-8") if not rows else write(bad, rows)
    with pytest.raises(UserError, match=f"bad.jsonl.*{message}"):
        compare_files(good, bad)


def test_absent_and_undecodable_files_are_user_errors(tmp_path):
    good = write(tmp_path / "good.jsonl", [{"item_id": "x", "score": 1}])
    with pytest.raises(UserError, match="cannot be read"):
        compare_files(tmp_path / "absent.jsonl", good)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be read"):
        compare_files(good, tmp_path / "bytes")


def test_no_overlap_is_not_comparable(tmp_path):
    a = write(tmp_path / "a", [{"item_id": "x", "score": 1}])
    b = write(tmp_path / "b", [{"item_id": "y", "score": 1}])
    with pytest.raises(NotComparableError, match="no item_id in common"):
        compare_files(a, b)
    c = write(tmp_path / "c", [{"item_id": "x", "score": 1, "benchmark": "other"}])
    with pytest.raises(NotComparableError, match="no benchmark in common"):
        compare_files(a, c)


def test_a_benchmark_without_overlap_is_listed_as_not_tested(tmp_path):
    a = write(tmp_path / "a", [{"item_id": i, "score": 1, "benchmark": n} for n, i in (("m", "x"), ("n", "x"))])
    b = write(tmp_path / "b", [{"item_id": i, "score": 0, "benchmark": n} for n, i in (("m", "x"), ("n", "y"))])
    tests = compare_files(a, b).tests
    assert [t.not_tested for t in tests] == ["", "no item_id in common"]
    assert tests[1].compatibility == "NONE"


def test_a_file_against_itself(tmp_path):
    a, _ = pair_of_files(tmp_path, 60, 5, 5, 30)
    comparison = compare_files(a, a)
    assert comparison.run_a == comparison.run_b and comparison.tests[0].p == 1.0


def recipe_files(folder: Path, name: str, rate: float, n: int = 3, **fields: Any) -> list[Path]:
    rng = np.random.default_rng(round(1_000 * rate))
    easy = np.random.default_rng(0).random(300)
    made = []
    for k in range(n):
        right = easy + rng.normal(0, 0.1, 300) < rate + 0.01 * k
        rows = [{"item_id": f"q{i}", "score": int(ok), **fields} for i, ok in enumerate(right)]
        made.append(write(folder / f"{name}{k}.jsonl", rows))
    return made


def test_several_files_an_arm_are_runs_of_a_recipe(tmp_path):
    a, b = recipe_files(tmp_path, "new", 0.8), recipe_files(tmp_path, "old", 0.5)
    found = compare_files(a, b)
    assert found.recipes.n_seeds == (3, 3) and found.recipes.answer == "A better on scores"
    assert found.label_a == "new0 and 2 other seeds" and len(found.further_a) == 2
    assert found.tests[0].method == "paired t on differences"
    paired = compare_files(a, b, seeds=(("1", "2", "3"), ("3", "2", "1")))
    assert paired.recipes.paired_by_seed and paired.comparison_id != found.comparison_id


def test_files_that_are_no_arms_are_refused_by_name(tmp_path):
    a, b = recipe_files(tmp_path, "new", 0.8), recipe_files(tmp_path, "old", 0.5)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(a[0].read_bytes())
    other = recipe_files(tmp_path, "other", 0.6, benchmark="prose")
    short = write(tmp_path / "short.jsonl", [{"item_id": "q0", "score": 1}])
    for arms, error, said in (
        ((a[:2], b), UserError, "arm A has 2 files; where an arm has several, both have 3 or more"),
        (([*a[:2], copy], b), UserError, "arm A has content '[0-9a-f]+' twice"),
        ((a, [copy, *b[1:]]), UserError, "a file's content [0-9a-f]+ is in both arms"),
        (([*a[:2], other[0]], b), NotComparableError, r"are of one arm and have other benchmarks: \['scores'\]"),
        (([*a[:2], short], b), NotComparableError, "run 3 of arm A was planned on other items than run 1"),
    ):
        with pytest.raises(error, match=said):
            compare_files(*arms)
    with pytest.raises(UserError, match="for one arm and not for the other"):
        compare_files(a, b, seeds=(("1", "2", "3"), ()))
