"""Every record goes to JSON and back unchanged, and what does not fit is refused by name."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from eval_tasks import records
from eval_tasks.errors import DataError
from eval_tasks.records import (
    Alert,
    Baseline,
    BenchmarkSelection,
    Block,
    Candidate,
    CheckpointFile,
    Clearing,
    Companion,
    Comparison,
    ComputedTwice,
    Confirmation,
    ContractReport,
    ContractResult,
    Cost,
    CostEntry,
    CurvePoint,
    DataSource,
    DecisionRule,
    EndpointAccess,
    EndpointConfig,
    EngineConfig,
    EngineTuning,
    Environment,
    Excursion,
    FewShot,
    GuardReport,
    HealthFinding,
    HealthLook,
    ImportedRows,
    Item,
    Judge,
    Judging,
    Landing,
    LossCurve,
    MeasuredNoise,
    Measurement,
    Night,
    PairedTest,
    Plan,
    PlannedShard,
    PromptTemplate,
    ReasoningBlock,
    RecipeAnswer,
    RecipeTest,
    Request,
    RerunComparison,
    RerunDifference,
    RowDifference,
    RowsComparison,
    Run,
    SampleOutput,
    Sampling,
    Scale,
    Score,
    ScorerRef,
    SeedStudy,
    Selection,
    Sensitivity,
    SensitivityShift,
    SentinelCheck,
    SentinelReport,
    StudiedBenchmark,
    Suite,
    SuiteEntry,
    VarianceTerm,
    WithinItem,
    from_json,
    to_json,
)
from tests.store import samples

NOW = samples.NOW
SAMPLE = SampleOutput(item_id="i", status="ok", prompt_tail="Q", output="A", extracted=None, gold="choice 0")
CLAUSE = ContractResult(
    benchmark="colours",
    part="rows",
    check="row_count",
    expectation="expect_table_row_count_to_be_between(min=1, max=1)",
    passed=True,
    observed="1 rows",
    expected="1 rows",
)
EXCURSION = Excursion(
    benchmark_id="b", benchmark="colours", metric="acc", check="c", observed="o", expected="e", samples=(SAMPLE,)
)
COMPANION = Companion(
    score=0.5, n=2, se=None, ci95=(0.1, 0.9), n_contaminated=1, n_not_checkable=0, difference=0.1, difference_se=None
)
RULE = DecisionRule(name="ship", kind="superiority", metric="acc", components={"colours": 1.0}, registered_at=NOW)
TEST = PairedTest(
    benchmark="colours",
    metric="acc",
    compatibility="SCORE",
    method="mid-p McNemar",
    n_pairs=10,
    n_attempted=10,
    score_a=0.6,
    score_b=0.5,
    delta=0.1,
    se=0.05,
    ci95=(0.0, 0.2),
    p=0.04,
    b=3,
    c=2,
    n_discordant=5,
    notes=("a", "b"),
)
SAMPLING = Sampling(temperature=0.6, samples=8, top_k=20, top_p=0.95, pass_at=(1, 8), reason="makers rule out greedy")
REASONING = ReasoningBlock(name="think", start="<think>", end="</think>")
ENDPOINT = EndpointConfig(base_url="https://judge.example/v1", model="m", seed=3)
SHARD = PlannedShard(shard=0, group="logprob", n_batches=1, n_items=2, cost_tokens=9)
IMPORTED = ImportedRows(format="lm-eval", files=("0" * 64,), name="from a log")
SOURCE = DataSource(hub="owner/name", revision="1" * 40, split="test")

STUDIED = StudiedBenchmark(
    benchmark="colours", metric="acc", n=10, n_seeds=3, s2_raw=1e-4, psi_seed=0.1, scores=(0.5, 0.6, 0.7)
)
RERUN = RerunDifference(benchmark="colours", metric="acc", n=10, delta=0.0, se_flip=0.0)
TERM = VarianceTerm(source="training seed", standing="EXTRAPOLATED", sd=0.006, origin="study s@1")
RECIPE = RecipeTest(benchmark="colours", metric="acc", delta=0.1, p=0.2, variances=(TERM,))

FINDING = HealthFinding(
    detection="divergence",
    benchmark="web",
    metric="bits_per_byte",
    unit="bits per byte",
    against_step=50,
    observed=0.1,
    threshold=0.02,
    se=0.01,
    p=1e-9,
    alpha=1e-6,
    detectable=0.05,
    alarm=True,
    since_step=100,
)
NOISE = MeasuredNoise(benchmark="web", metric="bits_per_byte", unit="bits per byte", sd=0.002, n_looks=20, last_step=50)
CANDIDATE = Candidate(run_id="r", label="tiny step 50", step=50, score=0.8, shrunk=0.79, in_set=True)
CONFIRMATION = Confirmation(
    n_select=50,
    n_confirm=50,
    selected="tiny step 50",
    score_select=0.8,
    score=0.78,
    ci95=(0.7, 0.86),
    against="tiny step 60",
    delta=0.01,
    delta_ci95=(-0.02, 0.04),
    p=0.5,
)
SELECTED = BenchmarkSelection(
    benchmark="colours",
    metric="acc",
    unit="fraction",
    higher_is_better=True,
    n_items=100,
    candidates=(CANDIDATE,),
    optimism=0.008,
    noise_sd=0.0035,
    spread_sd=0.0,
    confirmation=CONFIRMATION,
    noise=NOISE,
)
POINT = CurvePoint(step=50, run_id="r", score=0.9, ci95=(0.8, 1.0))
ROW = RowDifference(benchmark="b", item_id="i", field="logprobs[0]", a="-0x1.0p+0", b="-0x1.8p+0")
ROWS = RowsComparison(run_a="a", run_b="b", n_items=3, n_differing=1, first=(ROW,))
CHECK = SentinelCheck(name="alone", passed=False, n_items=200, differing=("x",), seconds=0.5)
CLEARING = Clearing(run_id="r", by="ada", reason="x", at=NOW)
SHIFT = SensitivityShift(
    benchmark="b", metric="acc", varied="dtype", variant="bfloat16", n=9, score=0.5, delta=0.1, se=None, n_flipped=1
)

CALIBRATION = records.Calibration(
    benchmark="b",
    benchmark_version="1",
    benchmark_id="id",
    metric="acc",
    grader="choice@1",
    runs=(records.CalibrationRun(run_id="r", checkpoint_id="c", group="llama"),),
    n_items=10,
    n_calibrated=9,
    n_flagged={"too_easy": 1},
    reliability=0.8,
    rounds=12,
    items_blob="blob",
)
CALIBRATED = records.CalibratedItem(
    item_id="i", n_runs=30, n_groups=6, share=0.5, share_ci95=(0.3, 0.7), discrimination=1.5, flags=("too_hard",)
)
MANIFEST = records.CorpusManifest(
    uri="s3://corpus", files=(records.CorpusFile(path="part-0", size=9, version="etag", format="jsonl"),)
)
SCAN = records.Scan(
    corpus="web",
    corpus_digest="d",
    manifest_blob="m",
    benchmark_ids=("id",),
    rule={"rule": "words-1", "n": [8, 13]},
    shards=((records.CorpusPiece(file=0, first_group=1, last_group=4),),),
)

SAMPLES: tuple[Any, ...] = (
    ROW,
    ROWS,
    CHECK,
    CLEARING,
    SHIFT,
    Baseline(env_fingerprint="f", suite_id="s", run_id="r", status="adopted", recorded_at=NOW, replaces="q"),
    Block(
        block_id="b",
        fingerprint="f",
        reason="x",
        opened_at=NOW,
        nodes=("n",),
        first=(ROW,),
        cleared=(CLEARING,),
        outcome="runs suspect",
    ),
    SentinelReport(run_id="r", env_fingerprint="f", node="n", checks=(CHECK,)),
    ComputedTwice(run_id="r", n_items=3, n_differing=1, n_elsewhere=2, nodes=("n",), first=(ROW,)),
    Night(
        night="2026-01-31",
        environment="local",
        env_fingerprint="f",
        suite_id="s",
        checkpoint_id="c",
        status="good",
        run_id="r",
        perturbed_run_id="p",
        recorded_at=NOW,
        good_at=NOW,
        n_items=3,
        device_seconds=1.5,
        against_baseline=ROWS,
        effect=(RERUN,),
        perturbed=ROWS,
        sentinels=(0, 16),
        block_ids=("b",),
        findings=("x",),
    ),
    Sensitivity(
        checkpoint_id="c",
        checkpoint_uri="u",
        suite="s",
        suite_id="i",
        engine_digest="e",
        env_fingerprint="f",
        harness_version="h",
        seed=0,
        n_items=9,
        recorded_at=NOW,
        shifts=(SHIFT,),
        not_varied=("x",),
    ),
    STUDIED,
    SeedStudy(
        name="s",
        origin="runs",
        source="",
        scale=Scale(parameters=10, step=5),
        benchmarks=(STUDIED,),
        measured_at=NOW,
        recorded_at=NOW,
        runs=("a", "b", "c"),
    ),
    Scale(tokens=10),
    RERUN,
    RerunComparison(env_a="e", env_b="e", measured_at=NOW, differences=(RERUN,)),
    TERM,
    RECIPE,
    RecipeAnswer(lineage="trained apart", answerable=True, answer="x", tests=(RECIPE,), composite=RECIPE),
    samples.checkpoint(),
    samples.benchmark(cluster_key="passage", few_shot=FewShot(k=5, select="seeded", match="subject", source=SOURCE)),
    samples.benchmark(template=PromptTemplate(item="{{ q }}", choices="options")),
    samples.run(status="closed", closed_at=NOW, env_fingerprint="f", config_digest="c", tuning=EngineTuning()),
    samples.run().request,
    IMPORTED,
    dataclasses.replace(samples.run().request, engine=IMPORTED),
    samples.response("i"),
    samples.response("i", output="x\n\u2028é", output_ids=(1, 2), finish_reason="length", output_truncated=True),
    samples.score("i", value=None, status="excluded", reason="rule", stratum="s", cluster="c"),
    samples.response("i", samples=(samples.sample(), samples.sample(output_ids=()))),
    samples.sample(),
    samples.score("i", value=0.5, sample_values=(1.0, 0.0)),
    SAMPLING,
    REASONING,
    WithinItem(n_samples=8, variance=0.25, se=0.01),
    samples.benchmark(sampling=SAMPLING, scorer=ScorerRef(name="gsm8k", version="1", reasoning=REASONING)),
    samples.batch(3, "a", "b"),
    CheckpointFile(path="config.json", size=1, blake3="0" * 64),
    Landing(training_run="tiny", step=1, uri="s3://b/1", listing=(("config.json", 1, "etag"),)),
    Item(item_id="i", fields={"q": "x", "n": [1, 2.5, None, {"a": True}]}, target=1, metadata={"source": "s"}),
    Request(
        benchmark_id="b",
        item_id="i",
        kind="choice",
        prompt="p",
        prompt_digest="d",
        prompt_ids=(1, 2),
        continuations=((3,), (4, 5)),
        choices=("A", "B"),
    ),
    COMPANION,
    Measurement(
        run_id="r",
        benchmark_id="b",
        benchmark="colours",
        version="1",
        metric="acc",
        primary=True,
        score=0.5,
        n=2,
        n_attempted=3,
        se=0.1,
        ci95=(0.2, 0.8),
        ci95_method="Wilson",
        companion=COMPANION,
    ),
    Plan(
        run_id="r",
        request=samples.run().request,
        environment="local",
        checkpoint_uri="s3://b/1",
        shards=(SHARD,),
        batches_blob="d",
        n_batches=1,
        n_items=2,
        notes=("n",),
    ),
    SHARD,
    SOURCE,
    FewShot(k=2),
    PromptTemplate(item="{{ q }}", stop=("\n\n",)),
    ScorerRef(name="gsm8k", version="1"),
    SuiteEntry(benchmark="colours", version="1", benchmark_id="b", n_items=10, seed=1),
    Suite(
        name="health",
        version="1",
        tier="health",
        entries=(SuiteEntry(benchmark="colours", version="1", benchmark_id="b"),),
    ),
    ENDPOINT,
    EndpointAccess(api_key_env="KEY", tries=2),
    Judge(
        name="helpful",
        version="1",
        kind="endpoint",
        template=PromptTemplate(item="{{ output }}"),
        answers={"yes": 1.0, "no": 0.0},
        engine=ENDPOINT,
        verdict_digest="v",
        pattern="(.*)",
        max_tokens=8,
    ),
    Judging(run_id="r", benchmark_id="b", grader="judge/helpful@1+d"),
    EngineConfig(device="cuda", dtype="bfloat16", max_context=512),
    EngineTuning(tokens_per_forward=4),
    Environment(components={"torch": "2.13.0"}),
    SAMPLE,
    EXCURSION,
    GuardReport(run_id="r", passed=False, checks={"row_count": "passed"}, excursions=(EXCURSION,)),
    Cost(items=1, tokens=2),
    CostEntry(
        run_id="r",
        training_run="tiny",
        tier="selection",
        environment="local",
        created_at=NOW,
        forecast=Cost(items=1, tokens=2, device_seconds=3.5, usd=0.25),
        actual=Cost(items=1, tokens=2),
    ),
    CLAUSE,
    ContractReport(by="great_expectations 1.24.1", results=(CLAUSE,)),
    Alert(alert_id="a", kind="excursion", title="t", body="b", created_at=NOW),
    FINDING,
    NOISE,
    HealthLook(
        run_id="r",
        training_run="tiny",
        step=100,
        look=2,
        alpha_per_run=0.01,
        horizon=1440,
        findings=(FINDING,),
        noise=(NOISE,),
        not_detected=("progress",),
        notes=("n",),
    ),
    POINT,
    CANDIDATE,
    CONFIRMATION,
    SELECTED,
    Selection(run_id="r", runs=("q", "r"), alpha=0.05, benchmarks=(SELECTED,), notes=("n",)),
    LossCurve(training_run="tiny", benchmark="web", metric="bits_per_byte", unit="bits per byte", points=(POINT,)),
    RULE,
    TEST,
    Comparison(
        run_a="a",
        run_b="b",
        label_a="A",
        label_b="B",
        tests=(TEST,),
        n_expected_by_chance=0.05,
        alpha=0.05,
        rule=RULE,
        verdict="A better",
        composite=TEST,
        further_a=("c",),
        recipes=RecipeAnswer(lineage="trained apart", answerable=False, answer="x"),
    ),
    CALIBRATION,
    CALIBRATION.runs[0],
    CALIBRATED,
    records.Ability(calibration="b@1/1", calibration_id="c", theta=0.5, se=0.1, ci95=(0.3, 0.7), n=9, gain=1.5),
    records.AbilityDifference(benchmark="b", metric="acc", calibration="b@1/1", calibration_id="c", theta_a=0.5),
    records.ItemReport(calibration=CALIBRATION, items=(CALIBRATED,), n_listed=1, texts={"i": ("question", "gold")}),
    MANIFEST,
    MANIFEST.files[0],
    SCAN,
    SCAN.shards[0][0],
    records.ShardHits(
        scan_id="s",
        shard=0,
        table_digest="t",
        runs_blob="r",
        segments_blob="g",
        examples_blob="e",
        n_documents=3,
        n_words=30,
        n_bytes=200,
        problems={"torn_line": 1},
        named=("line 3 of part-0",),
    ),
    records.PastPairs(n_comparisons=1, n_pairs=100, n_discordant=9, n_spread=1, n_spread_pairs=100, variance=0.1),
    records.PlannedResolution(
        suite="s",
        tier="release",
        benchmark="b",
        metric="acc",
        unit="fraction",
        n=100,
        basis="past comparisons",
        discordance=0.1,
        mde=0.02,
        n_needed=400,
        resolves_target=False,
    ),
)


def test_no_record_is_left_out() -> None:
    exported = {getattr(records, name) for name in records.__all__}
    assert {type(sample) for sample in SAMPLES} == {kind for kind in exported if dataclasses.is_dataclass(kind)}


@pytest.mark.parametrize("record", SAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_from_json_text_as_it_was(record: Any) -> None:
    text = json.dumps(to_json(record), allow_nan=False)
    assert from_json(type(record), json.loads(text)) == record


@pytest.mark.parametrize("record", SAMPLES, ids=lambda record: type(record).__name__)
def test_an_unknown_field_is_refused_by_name(record: Any) -> None:
    with pytest.raises(DataError, match=rf"stored {type(record).__name__} does not fit: surprise: .*"):
        from_json(type(record), {**to_json(record), "surprise": 1})


@pytest.mark.parametrize("record", SAMPLES, ids=lambda record: type(record).__name__)
def test_records_are_frozen_and_keyword_only(record: Any) -> None:
    name = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, getattr(record, name))
    with pytest.raises(TypeError):
        type(record)(getattr(record, name))


def test_a_missing_field_a_wrong_type_and_an_unknown_word_are_refused_by_name() -> None:
    whole = to_json(samples.score("i"))
    with pytest.raises(DataError, match="stored Score does not fit: metric: Field required"):
        from_json(Score, {name: value for name, value in whole.items() if name != "metric"})
    with pytest.raises(DataError, match="stored Score does not fit: weight: "):
        from_json(Score, {**whole, "weight": "heavy"})
    with pytest.raises(DataError, match="stored Score does not fit: status: "):
        from_json(Score, {**whole, "status": "fine"})
    with pytest.raises(DataError, match="stored Score does not fit: value"):
        from_json(Score, ["not", "a", "mapping"])


def test_a_nested_unknown_field_is_named_with_its_place() -> None:
    stored = to_json(samples.run())
    stored["request"]["engine"]["warp"] = True
    with pytest.raises(DataError, match=r"stored Run does not fit: request\.engine\.EngineConfig\.warp: "):
        from_json(Run, stored)
