"""A run with everything a report can show: three kinds of metric, a companion, a quarantine, a comparison."""

from __future__ import annotations

import pytest

from eval_tasks.records import (
    BenchmarkVersion,
    Companion,
    Comparison,
    ContractReport,
    ContractResult,
    DataSource,
    DecisionRule,
    EngineConfig,
    Environment,
    Excursion,
    GuardReport,
    Measurement,
    PairedTest,
    PromptTemplate,
    Run,
    RunRequest,
    SampleOutput,
    ScorerRef,
)
from eval_tasks.report import ReportView


def measurement(benchmark: str, metric: str, score: float | None, half: float, **changes: object) -> Measurement:
    fields: dict[str, object] = {
        "run_id": "a" * 32,
        "benchmark_id": f"id-{benchmark}",
        "benchmark": benchmark,
        "version": "1",
        "metric": metric,
        "primary": True,
        "score": score,
        "n": 500,
        "n_attempted": 500,
        "se": half / 1.96,
        "ci95": None if score is None else (score - half, score + half),
        "ci95_method": "wilson",
    }
    return Measurement(**{**fields, **changes})  # type: ignore[arg-type]


def paired_test(benchmark: str, metric: str, delta: float | None, half: float, **changes: object) -> PairedTest:
    fields: dict[str, object] = {
        "benchmark": benchmark,
        "metric": metric,
        "compatibility": "SCORE",
        "method": "McNemar mid-p",
        "n_pairs": 500,
        "n_attempted": 500,
        "score_a": 0.82,
        "score_b": None if delta is None else 0.82 - delta,
        "delta": delta,
        "se": half / 1.96,
        "ci95": None if delta is None else (delta - half, delta + half),
        "p": 0.021,
        "q": 0.063,
        "b": 40,
        "c": 12,
        "n_discordant": 52,
        "mde": 0.031,
    }
    return PairedTest(**{**fields, **changes})  # type: ignore[arg-type]


def benchmark(name: str) -> BenchmarkVersion:
    return BenchmarkVersion(
        name=name,
        version="1",
        kind="choice",
        items_digest="1" * 64,
        template_digest="2" * 64,
        scorer_digest="3" * 64,
        n_items=500,
        items_blob="4" * 64,
        few_shot_blob=None,
        template=PromptTemplate(item="{{ question }}"),
        few_shot=None,
        scorer=ScorerRef(name="choice", version="1"),
        primary_metric="acc",
        licence="Apache-2.0",
        source=DataSource(uri="x.parquet", blake3="5" * 64, format="parquet"),
        created_at="2026-11-30T00:00:00Z",
        chance_level=0.25,
    )


def make_run(run_id: str = "a" * 32, **changes: object) -> Run:
    fields: dict[str, object] = {
        "run_id": run_id,
        "request": RunRequest(
            checkpoint_id="c" * 64,
            suite="demo-selection",
            suite_version="1",
            suite_id="d" * 32,
            benchmark_ids=("id-demo-choice",),
            engine=EngineConfig(),
            harness_version="0.1.0+abcdef",
        ),
        "environment": "local",
        "tier": "selection",
        "training_run": "demo",
        "step": 900,
        "checkpoint_uri": "file:///runs/demo/step-900",
        "status": "closed",
        "created_at": "2026-11-30T21:40:00Z",
        "closed_at": "2026-11-30T21:44:00Z",
        "env_fingerprint": "e" * 32,
        "config_digest": "f" * 64,
    }
    return Run(**{**fields, **changes})  # type: ignore[arg-type]


def make_comparison(**changes: object) -> Comparison:
    fields: dict[str, object] = {
        "run_a": "a" * 32,
        "run_b": "b" * 32,
        "label_a": "demo step 900",
        "label_b": "demo step 50",
        "tests": (
            paired_test("demo-choice", "acc", 0.404, 0.06, p=2e-12, q=6e-12, verdict="A better", p_exact=3e-12),
            paired_test("mmlu-pro", "acc", -0.011, 0.024, p=0.41, q=0.55, inconclusive="UNDERPOWERED", n_needed=7800),
            paired_test("gsm8k", "strict", 0.006, 0.009, p=0.2, q=0.4, inconclusive="EQUIVALENT"),
            paired_test("ifeval", "strict", None, 0.0, p=None, q=None, b=None, c=None, not_tested="quarantined in A"),
            paired_test(
                "demo-text",
                "bits_per_byte",
                -0.4211,
                0.02,
                unit="bits per byte",
                higher_is_better=False,
                p=1e-9,
                q=2e-9,
                b=None,
                c=None,
                method="paired t",
                verdict="A better",
                score_a=0.9,
                score_b=1.3211,
                mde=0.0285,
                companion_delta=-0.4,
                companion_ci95=(-0.43, -0.37),
                companion_p=1e-8,
                contamination="4.0 % of 500, 13-gram, 2026-11-29",
            ),
        ),
        "n_expected_by_chance": 0.18,
        "alpha": 0.05,
        "rule": DecisionRule(
            name="demo-rule",
            kind="superiority",
            metric="acc",
            components={"demo-choice": 1.0},
            margin=0.02,
            registered_at="2026-11-30T21:00:00Z",
        ),
        "exploratory": False,
        "verdict": "A better",
        "reason": "demo-choice acc is 40.4 points higher, q <0.0001",
        "sources_of_variance": {
            "sampling": "measured on 500 pairs",
            "training seed": "not measured: same training run",
        },
    }
    return Comparison(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def view() -> ReportView:
    clean = Companion(
        score=0.805,
        n=460,
        se=0.018,
        ci95=(0.77, 0.84),
        n_contaminated=30,
        n_not_checkable=10,
        difference=0.015,
        difference_se=0.007,
    )
    return ReportView(
        run=make_run(),
        measurements=(
            measurement("demo-choice", "acc", 0.66, 0.034, benchmark_id=benchmark("demo-choice").benchmark_id),
            measurement(
                "mmlu-pro", "acc", 0.82, 0.034, companion=clean, contamination="6.1 %, 13-gram, 2026-11-29", n_invalid=2
            ),
            measurement("mmlu-pro", "acc_norm", 0.79, 0.036, primary=False),
            measurement("gsm8k", "strict", 0.55, 0.044, n=480, n_missing=20, n_output_truncated=31),
            measurement(
                "ifeval",
                "strict",
                0.002,
                0.004,
                quarantined=True,
                quarantine_reason="strict below plausible 0.05 to 0.95",
            ),
            measurement("demo-text", "bits_per_byte", 0.9, 0.02, unit="bits per byte", higher_is_better=False),
        ),
        benchmarks=(benchmark("demo-choice"),),
        guard=GuardReport(
            run_id="a" * 32,
            passed=False,
            checks={"row count": "2,500 of 2,500", "ids unique": "ok", "plausible range": "1 excursion"},
            excursions=(
                Excursion(
                    benchmark_id="id-ifeval",
                    benchmark="ifeval",
                    metric="strict",
                    check="plausible range",
                    observed="0.2 points",
                    expected="5.0 to 95.0 points",
                    samples=tuple(
                        SampleOutput(
                            item_id=f"ifeval-{i}",
                            status="ok",
                            prompt_tail="Write a poem about the sea in exactly three lines.",
                            output="the the the the the " * 6,
                            extracted=None,
                            gold="length_constraints:number_sentences",
                        )
                        for i in range(5)
                    ),
                ),
            ),
        ),
        contract=ContractReport(
            by="great_expectations 1.24.1",
            results=tuple(
                ContractResult(
                    benchmark="ifeval",
                    part="rows",
                    check=check,
                    expectation=expectation,
                    passed=passed,
                    observed=observed,
                    expected=expected,
                )
                for check, expectation, passed, observed, expected in (
                    ("row_count", "expect_table_row_count_to_be_between(min=3, max=3)", True, "3 rows", "3 rows"),
                    ("unique_ids", "expect_column_values_to_be_unique(item_id)", False, "2 of 3 share", "all distinct"),
                )
            ),
        ),
        environment=Environment(components={"torch": "2.13.0", "cpu": "x86_64 AVX2", "python": "3.11.14"}),
        shard_seconds={0: 61.2, 1: 58.9},
        comparison=make_comparison(),
    )
