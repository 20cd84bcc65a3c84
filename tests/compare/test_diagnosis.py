"""Where two runs disagree: stored runs and plain files."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eval_tasks.compare import compare, diagnose, diagnose_files, keep_diagnoses
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.publish import build_view, publish
from eval_tasks.records import Item
from tests.compare.stored import ids, scores_of, stored_run
from tests.store import samples

A = [1.0] * 40 + [0.0] * 12 + [1.0] * 3 + [0.0] * 45
B = [1.0] * 40 + [1.0] * 12 + [0.0] * 3 + [0.0] * 45


def files(tmp_path, a=A, b=B, **fields):
    paths = []
    for name, values in (("new", a), ("old", b)):
        rows = [
            {"item_id": f"i{k:03d}", "score": v, "category": "sums" if 40 <= k < 60 else f"c{k % 4}", "cluster": k // 5}
            | fields
            for k, v in enumerate(values)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        paths.append(path)
    return paths


def test_losses_are_ranked_by_group(tmp_path):
    (found,) = diagnose_files(*files(tmp_path))
    assert (found.n_pairs, found.lost, found.gained) == (100, 12, 3)
    by_category, by_cluster = found.by
    first = by_category.groups[0]
    assert (first.group, first.n, first.lost, first.gained, by_category.n_groups) == ("sums", 20, 12, 3, 5)
    assert by_category.p_flips < 0.001 and first.q == pytest.approx(first.p)
    assert by_category.p_direction is None  # all flips are in one category
    assert by_cluster.n_groups == 20 and by_cluster.groups[0].lost == 5


def test_lost_items_come_first_and_gained_ones_fill_up(tmp_path):
    (found,) = diagnose_files(*files(tmp_path), n_items=14)
    assert [i.lost for i in found.items] == [True] * 12 + [False] * 2
    assert found.items[0].item_id == "i040" and found.items[0].category == "sums" and found.items[0].cluster == "8"
    assert diagnose_files(*files(tmp_path), n_items=0)[0].items == ()


def test_no_flip_at_all(tmp_path):
    (found,) = diagnose_files(*files(tmp_path, A, A))
    assert (found.lost, found.gained, found.items) == (0, 0, ())
    assert [(g.p_flips, g.p_direction) for g in found.by] == [(None, None)] * 2


def test_scores_that_are_no_right_or_wrong_do_not_flip(tmp_path):
    (found,) = diagnose_files(*files(tmp_path, [0.5] * 4, [0.25] * 4))
    assert "not right or wrong" in found.not_diagnosed


def test_what_is_not_shared_is_named(tmp_path):
    paths = files(tmp_path)
    with pytest.raises(UserError, match="'nope'"):
        diagnose_files(*paths, benchmark="nope")
    other = tmp_path / "other.jsonl"
    other.write_text('{"item_id": "i000", "score": 1, "benchmark": "else"}\n')
    with pytest.raises(NotComparableError, match="no benchmark in common"):
        diagnose_files(paths[0], other)
    lone = tmp_path / "lone.jsonl"
    lone.write_text('{"item_id": "elsewhere", "score": 1}\n')
    assert diagnose_files(paths[0], lone)[0].not_diagnosed == "no item has a score in both runs"


def stored_pair(store):
    items = [
        Item(
            item_id=i, fields={"q": f"question {i}"}, target="four", metadata={"category": "sums" if k % 2 else "prose"}
        )
        for k, i in enumerate(ids(100))
    ]
    bench = replace(
        samples.benchmark(), cluster_key="passage", category_key="topic", items_blob=store.blobs.put_items(items)
    )
    rows = [
        [
            replace(r, cluster=f"p{k // 4}", extracted="4" if v else "5")
            for k, (r, v) in enumerate(zip(scores_of(bench, x, bench.primary_metric), x, strict=True))
        ]
        for x in (A, B)
    ]
    return [stored_run(store, k + 1, (bench, rows[k]), status="closed").run_id for k in (0, 1)]


def test_stored_runs_show_outputs_and_gold(store):
    first, second = stored_pair(store)
    (found,) = diagnose(store, first, second, n_items=3)
    assert [g.by for g in found.by] == ["category", "cluster"] and (found.lost, found.gained) == (12, 3)
    item = found.items[0]
    assert (item.lost, item.gold, item.extracted_a, item.extracted_b) == (True, "four", "5", "4")
    assert "question" in item.prompt and item.output_a is not None
    with pytest.raises(UserError, match="do not share benchmark"):
        diagnose(store, first, second, benchmark="nope")


def test_diagnoses_are_kept_with_the_comparison_and_published(store):
    first, second = stored_pair(store)
    compared = compare(store, first, second)
    assert compared.diagnoses_blob == "" and build_view(store, run_id=first).diagnoses == ()
    kept = keep_diagnoses(store, compared)
    assert kept.comparison_id == compared.comparison_id and replace(kept, diagnoses_blob="") == compared
    assert compare(store, first, second) == kept, "the same comparison again keeps them"
    (found,) = build_view(store, run_id=first, comparison_id=kept.comparison_id).diagnoses
    assert (found.lost, found.gained, len(found.items)) == (12, 3, 15)
    published = publish(store, run_id=first, now=samples.NOW, comparison_id=kept.comparison_id)
    page = store.blobs.get(published.html_blob).decode("utf-8")
    assert "Items that flipped" in page and "question i0040" in page and "Output of B" in page
    report = json.loads(store.blobs.get(published.json_blob))
    assert report["diagnoses"][0]["by"][0]["by"] == "category" and report["diagnoses"][0]["items"][0]["gold"] == "four"


def test_items_are_shared_whatever_their_order_and_those_of_one_arm_are_not_flips(tmp_path):
    paths = files(tmp_path)
    lines = paths[1].read_text("utf-8").splitlines()
    paths[1].write_text("\n".join([*reversed(lines[:-1]), json.dumps({"item_id": "zz", "score": 1})]) + "\n", "utf-8")
    (part,) = diagnose_files(*paths)
    (whole,) = diagnose_files(*files(tmp_path))
    assert part.n_pairs == 99 and (part.lost, part.gained) == (whole.lost, whole.gained) == (12, 3)
    assert part.items == whole.items
