"""A comparison in, the JSON document of `compare --json` out, with its JSON Schema. Knows no file and no layout.

Field names and meanings are those of `eval_tasks.records.Comparison`; numbers are fractions (or the metric's unit),
unrounded. ``comparison.schema.json`` beside this module is what `comparison_schema` gives, and a test holds it to that:
a change that breaks a reader raises `COMPARISON_SCHEMA_VERSION`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from eval_tasks.records import Comparison, to_json
from eval_tasks.records.diagnosis import Diagnosis
from eval_tasks.report import sentences

COMPARISON_SCHEMA_VERSION = "1"
SCHEMA_FILE = Path(__file__).with_name("comparison.schema.json")
_NAME = "checkpoint-eval/comparison"


def comparison_json(comparison: Comparison, diagnoses: Sequence[Diagnosis] = ()) -> dict[str, Any]:
    """The comparison's fields, with what it is called, its verdict as one sentence, and where the runs disagree."""
    return to_json(comparison) | {
        "schema": _NAME,
        "schema_version": COMPARISON_SCHEMA_VERSION,
        "comparison_id": comparison.comparison_id,
        "sentence": sentences.verdict(comparison),
        "diagnoses": [to_json(d) for d in diagnoses],
    }


def comparison_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `comparison_json` gives: every field is there, and no other."""
    schema = TypeAdapter(Comparison).json_schema(mode="serialization")
    diagnosis = TypeAdapter(Diagnosis).json_schema(mode="serialization", ref_template="#/$defs/{model}")
    definitions = schema.pop("$defs") | diagnosis.pop("$defs") | {"Diagnosis": diagnosis}
    schema["properties"] |= {
        "schema": {"const": _NAME},
        "schema_version": {"const": COMPARISON_SCHEMA_VERSION},
        "comparison_id": {"type": "string", "description": "Digest of the runs and the rule (or alpha)."},
        "sentence": {"type": "string", "description": "The verdict in one sentence, with its reason."},
        "diagnoses": {"type": "array", "items": {"$ref": "#/$defs/Diagnosis"}},
    }
    for part in (schema, *definitions.values()):
        part["required"] = sorted(part["properties"])
        part["additionalProperties"] = False
        for prop in part["properties"].values():
            prop.pop("default", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Comparison of two runs",
        "$defs": dict(sorted(definitions.items())),
    }
