"""The JSON of `compare --json` against the schema file that ships."""

from __future__ import annotations

import json
from dataclasses import fields

import jsonschema
import numpy as np
import pytest

from eval_tasks.compare import compare_scores, diagnose_files
from eval_tasks.records import Comparison, from_json
from eval_tasks.report.comparison_document import SCHEMA_FILE, comparison_json, comparison_schema
from tests.compare.arms import LOSS, SIDES, arms, of_cells, rule


def shipped() -> dict:
    return json.loads(SCHEMA_FILE.read_text("utf-8"))


def test_the_file_that_ships_is_the_schema_of_this_version():
    way_out = f"python -m eval_tasks schema comparison > {SCHEMA_FILE.name} (beside the module), and see that no reader"
    assert shipped() == comparison_schema(), f"{way_out} breaks"


def comparisons() -> dict[str, Comparison]:
    rng = np.random.default_rng(5)
    loss = [float(x) for x in rng.gamma(2, 1, 30)]
    listed = [
        of_cells(700, 120, 60, 120, name="one", contamination={"i00001": "clean"}, contamination_note="0.0% of items"),
        of_cells(780, 30, 30, 160, name="two"),
        arms(loss, [x + 0.1 for x in loss], name="text", metric="bits", info=LOSS),
        of_cells(1, 0, 0, 0, name="shut", not_tested="quarantined in B: range"),
    ]
    return {
        "without a rule": compare_scores(listed, SIDES),
        "one primary": compare_scores(listed, SIDES, rule=rule(components={"one": 1.0})),
        "several": compare_scores(
            listed, SIDES, rule=rule(components={}, primary=("one", "two"), multiplicity="holm", seeds=1)
        ),
        "composite": compare_scores(listed, SIDES, rule=rule(components={"one": 0.5, "two": 0.5})),
        "no verdict": compare_scores(listed, SIDES, rule=rule(components={"shut": 1.0})),
    }


@pytest.mark.parametrize("name", comparisons())
def test_real_output_fits_the_schema(name):
    document = json.loads(json.dumps(comparison_json(comparisons()[name]), allow_nan=False))
    jsonschema.validate(document, shipped(), cls=jsonschema.Draft202012Validator)
    assert document["sentence"].endswith(".") and document["schema"] == "checkpoint-eval/comparison"


def test_diagnoses_fit_the_schema(tmp_path):
    paths = []
    for name, right in (("a", 30), ("b", 20)):
        paths.append(tmp_path / f"{name}.jsonl")
        rows = [{"item_id": f"q{k}", "score": int(k < right), "category": f"c{k % 3}"} for k in range(40)]
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    document = comparison_json(comparisons()["one primary"], diagnose_files(*paths))
    assert document["diagnoses"][0]["gained"] == 10 and document["diagnoses"][0]["by"][0]["by"] == "category"
    jsonschema.validate(json.loads(json.dumps(document)), shipped(), cls=jsonschema.Draft202012Validator)


def test_the_schema_refuses_other_fields_and_missing_ones():
    document = comparison_json(comparisons()["composite"])
    for broken in (
        {**document, "extra": 1},
        {k: v for k, v in document.items() if k != "verdict"},
        {**document, "tests": [{**document["tests"][0], "p": "small"}]},
        {**document, "verdict": "A is better"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(json.dumps(broken)), shipped(), cls=jsonschema.Draft202012Validator)


def test_the_record_comes_back_out_of_the_document():
    comparison = comparisons()["several"]
    document = comparison_json(comparison)
    own = {field.name for field in fields(Comparison)}
    assert from_json(Comparison, {k: v for k, v in document.items() if k in own}) == comparison
    assert set(document) == set(shipped()["required"])
