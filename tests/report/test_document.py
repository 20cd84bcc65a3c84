import dataclasses
import json
import math

import jsonschema
import pytest

from eval_tasks.errors import UserError
from eval_tasks.records import Comparison, Measurement, from_json
from eval_tasks.report import SCHEMA_VERSION, ReportView, report_json, report_schema


def test_the_document_fits_its_schema_and_is_strict_json(view: ReportView) -> None:
    document = report_json(view)
    json.dumps(document, allow_nan=False).encode("utf-8")
    jsonschema.Draft202012Validator.check_schema(report_schema())
    jsonschema.validate(document, report_schema())
    assert document["schema_version"] == SCHEMA_VERSION


def test_the_records_come_back_out_of_it(view: ReportView) -> None:
    document = json.loads(json.dumps(report_json(view)))
    assert [from_json(Measurement, m) for m in document["measurements"]] == list(view.measurements)
    assert from_json(Comparison, document["comparison"]) == view.comparison


def test_the_schema_refuses_a_document_with_a_field_of_the_wrong_type(view: ReportView) -> None:
    document = report_json(view) | {"measurements": [{"score": "high"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, report_schema())


def test_what_json_cannot_carry_becomes_null_or_a_replacement_character(view: ReportView) -> None:
    broken = dataclasses.replace(view.measurements[0], score=math.nan, ci95=(-math.inf, math.inf))
    hostile = dataclasses.replace(view, measurements=(broken,), notes=("lone \udcff surrogate",))
    document = report_json(hostile)
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode("utf-8")
    jsonschema.validate(document, report_schema())
    assert document["measurements"][0]["score"] is None
    assert document["measurements"][0]["ci95"] == [None, None]
    assert document["notes"] == ["lone \N{REPLACEMENT CHARACTER} surrogate"]


def test_resolution_is_the_unpaired_minimum_detectable_effect(view: ReportView) -> None:
    se = math.sqrt(0.82 * 0.18 / 500)
    single = dataclasses.replace(view, measurements=(dataclasses.replace(view.measurements[0], se=se),))
    assert report_json(single)["resolution"][0]["detectable"] == pytest.approx(0.0681, abs=5e-5)


def test_a_comparison_alone_is_a_report(view: ReportView) -> None:
    document = report_json(ReportView(comparison=view.comparison))
    assert document["run"] is None
    assert document["identity"]["baseline_run_id"] == "b" * 32
    jsonschema.validate(document, report_schema())


def test_an_empty_view_is_refused() -> None:
    with pytest.raises(UserError, match="needs a run, a comparison or an item report"):
        ReportView()
