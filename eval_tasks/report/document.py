"""A `ReportView` in, a JSON document out. Knows no file and no layout.

Numbers are as recorded (fractions, unrounded); the sentences are those of the other renderings. Every value is one
that RFC 8259 allows: NaN and infinities become null, lone surrogates and control characters U+FFFD. `report_schema`
gives the JSON Schema; a change that breaks a reader raises `SCHEMA_VERSION`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from eval_tasks.records import (
    BenchmarkVersion,
    Comparison,
    ContractReport,
    Environment,
    GuardReport,
    HealthLook,
    ItemReport,
    LossCurve,
    Measurement,
    Run,
    Selection,
)
from eval_tasks.records.diagnosis import Diagnosis
from eval_tasks.report import resolution, sentences
from eval_tasks.report.text import clean
from eval_tasks.report.view import ReportView

SCHEMA_VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The digests that name what was run; null where the report is of a comparison alone or nothing ran yet."""

    run_id: str | None
    request_digest: str | None
    config_digest: str | None
    env_fingerprint: str | None
    checkpoint_id: str | None
    comparison_id: str | None
    baseline_run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Smallest true differences found with 80 % power; fractions or the unit.

    `detectable`: from an independent run of equal size. `paired`: on the same items, in this comparison or by the past
    ones that `paired_by` names.
    """

    benchmark_id: str
    metric: str
    detectable: float | None
    paired: float | None
    paired_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDocument:
    """The whole document. Records are embedded as they are; `guard`, `comparison` and the like are null when absent."""

    schema: Literal["checkpoint-eval/report"]
    schema_version: str
    title: str
    verdict: str | None
    evidence: str | None
    by_chance: str | None
    not_claimed: tuple[str, ...]
    suspect: tuple[str, ...]
    notes: tuple[str, ...]
    could_have_seen: str
    identity: Identity
    run: Run | None
    measurements: tuple[Measurement, ...]
    resolution: tuple[Resolution, ...]
    benchmarks: tuple[BenchmarkVersion, ...]
    benchmark_ids: tuple[str, ...]
    guard: GuardReport | None
    contract: ContractReport | None
    comparison: Comparison | None
    baseline: Run | None
    baseline_measurements: tuple[Measurement, ...]
    environment: Environment | None
    health: HealthLook | None
    loss_curves: tuple[LossCurve, ...]
    selection: Selection | None
    item_report: ItemReport | None
    shard_seconds: Mapping[str, float]
    device_seconds: float
    diagnoses: tuple[Diagnosis, ...]


def report_json(view: ReportView) -> dict[str, Any]:
    """The report as a JSON-ready dict, its keys in a fixed order."""
    run, comparison = view.run, view.comparison
    document = ReportDocument(
        schema="checkpoint-eval/report",
        schema_version=SCHEMA_VERSION,
        title=sentences.title(view),
        verdict=sentences.verdict(comparison) if comparison else None,
        evidence=sentences.exploratory(comparison) if comparison else None,
        by_chance=sentences.chance(comparison) if comparison else None,
        not_claimed=sentences.not_claimed(view),
        suspect=view.suspect,
        notes=view.notes,
        could_have_seen=resolution.could_have_seen(view),
        identity=Identity(
            run_id=run.run_id if run else None,
            request_digest=run.request.request_digest if run else None,
            config_digest=run.config_digest if run else None,
            env_fingerprint=run.env_fingerprint if run else None,
            checkpoint_id=run.request.checkpoint_id if run else None,
            comparison_id=comparison.comparison_id if comparison else None,
            baseline_run_id=comparison.run_b if comparison else None,
        ),
        run=run,
        measurements=view.measurements,
        resolution=tuple(_resolution(m, view) for m in view.measurements),
        benchmarks=view.benchmarks,
        benchmark_ids=tuple(b.benchmark_id for b in view.benchmarks),
        guard=view.guard,
        contract=view.contract,
        comparison=comparison,
        baseline=view.baseline,
        baseline_measurements=view.baseline_measurements,
        environment=view.environment,
        health=view.health,
        loss_curves=view.curves,
        selection=view.selection,
        item_report=view.item_report,
        shard_seconds={str(shard): view.shard_seconds[shard] for shard in sorted(view.shard_seconds)},
        device_seconds=math.fsum(view.shard_seconds.values()),
        diagnoses=view.diagnoses,
    )
    plain: dict[str, Any] = _plain(document)
    return plain


def report_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `report_json` gives; numbers that were not finite are null beside it."""
    schema = TypeAdapter(ReportDocument).json_schema()
    _allow_null(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _resolution(m: Measurement, view: ReportView) -> Resolution:
    paired, basis = resolution.paired_mde(m, view)
    return Resolution(
        benchmark_id=m.benchmark_id,
        metric=m.metric,
        detectable=sentences.resolvable(m),
        paired=paired,
        paired_by=basis,
    )


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    return value


def _allow_null(schema: Any) -> None:
    """Every number of the schema may be null, since a value that is not finite becomes one."""
    if isinstance(schema, dict):
        if schema.get("type") == "number":
            schema["type"] = ["number", "null"]
        for part in schema.values():
            _allow_null(part)
    elif isinstance(schema, list):
        for part in schema:
            _allow_null(part)
