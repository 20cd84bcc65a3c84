"""Verdict figures on runs that others recorded: GSM8K and MMLU."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from eval_tasks.compare import compare_scores, diagnose_files
from tests.compare.arms import SIDES, arms, table

pytestmark = pytest.mark.golden


def lines(path: Path) -> list:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def comparison_of(a, b, ids=None):
    return compare_scores([arms(table(a, ids=ids), table(b, ids=ids))], SIDES).tests[0]


def test_the_175b_finetuned_against_the_6b_verifier(golden):
    rows = lines(golden / "gsm8k/example_model_solutions.jsonl.gz")
    correct = {
        arm: [float(row[arm]["is_correct"]) for row in rows]
        for arm in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    }
    assert sorted(int(sum(values)) for values in correct.values()) == [286, 458, 515, 742]
    test = comparison_of(correct["175b_finetuning"], correct["6b_verification"])
    assert test.n_pairs == 1_319 and sorted((test.b, test.c)) == [152, 209]
    assert test.p_exact == pytest.approx(0.00315, abs=5e-6)
    assert test.p < test.p_exact and test.verdict != "INDISTINGUISHABLE"


def recorded(golden: Path, name: str, kind: str):
    rows = lines(golden / f"recorded_runs/gsm8k/gsm8k_{name}.jsonl.gz")
    return [float(row[kind]["score"]) for row in rows], [str(row["id"]) for row in rows]


def test_rereading_with_gpt_4o_mini(golden):
    (base, ids), (again, ids_again) = (recorded(golden, f"gpt4omini_{arm}", "cot") for arm in ("base", "re2"))
    test = compare_scores([arms(table(again, ids=ids_again), table(base, ids=ids))], SIDES).tests[0]
    assert sorted((test.b, test.c)) == [22, 40] and test.p_exact == pytest.approx(0.030, abs=5e-4)


def test_rereading_with_davinci_moves_as_many_up_as_down(golden):
    (base, ids), (again, ids_again) = (recorded(golden, f"davinci003_{arm}", "vanilla") for arm in ("base", "re2"))
    test = compare_scores([arms(table(again, ids=ids_again), table(base, ids=ids))], SIDES).tests[0]
    assert (test.b, test.c, test.p, test.delta, test.verdict) == (103, 103, 1.0, 0.0, "INDISTINGUISHABLE")


def test_five_checkpoints_of_one_training_run_on_mmlu(golden):
    with gzip.open(golden / "recorded_runs/mmlu_checkpoints/predictions.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    ids = [f"{row['subject']}/{row['index']}" for row in rows]
    right = {step: [float(row[f"ckpt{step}"] == row["gold"]) for row in rows] for step in (0, 50, 100, 150, 200)}
    assert [round(100 * sum(v) / len(v), 2) for v in right.values()] == [46.92, 46.68, 46.23, 46.38, 46.25]
    first = comparison_of(right[0], right[200], ids)
    assert (first.b, first.c, first.n_pairs) == (675, 593, 12_343) and first.p_exact == pytest.approx(0.0229, abs=5e-5)
    assert first.verdict == "A better"
    late = comparison_of(right[150], right[200], ids)
    assert (late.b, late.c) == (61, 45) and late.p_exact == pytest.approx(0.145, abs=5e-4)
    assert (late.verdict, late.inconclusive) == ("INDISTINGUISHABLE", "EQUIVALENT")


def test_what_the_mmlu_checkpoints_lost_by_subject(golden, tmp_path):
    with gzip.open(golden / "recorded_runs/mmlu_checkpoints/predictions.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    paths = []
    for step in (200, 0):
        paths.append(tmp_path / f"ckpt{step}.jsonl")
        lines_of = [
            {
                "item_id": f"{r['subject']}/{r['index']}",
                "score": int(r[f"ckpt{step}"] == r["gold"]),
                "category": r["subject"],
            }
            for r in rows
        ]
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines_of), "utf-8")
    (found,) = diagnose_files(*paths)
    assert (found.n_pairs, found.lost, found.gained) == (12_343, 675, 593)
    (by,) = found.by
    assert sum(g.lost - g.gained for g in by.groups) > 0 and by.groups[0].lost > by.groups[0].gained
    assert by.n_groups == len({r["subject"] for r in rows}) and all(g.q >= g.p for g in by.groups if g.lost + g.gained)
    assert by.p_flips is not None and by.p_flips < 0.05
