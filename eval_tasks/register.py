"""YAML files -> registered benchmarks, suites and rules. Everything is checked first; a refused file leaves nothing.

The same file again changes nothing. Other content under the same name and version is refused by the catalog, with the
digest that differs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.datasets import Dataset, Finding, data_findings, items_digest, load_dataset
from eval_tasks.digests import digest_parts
from eval_tasks.errors import UserError
from eval_tasks.prompts import Composer, PromptBuilder, template_digest
from eval_tasks.prompts.few_shot import Shots
from eval_tasks.records import BenchmarkVersion, DecisionRule, EngineConfig, Item, ScorerRef, Suite, SuiteEntry
from eval_tasks.registry import (
    BenchmarkSpec,
    RuleSpec,
    load_benchmark_file,
    load_rule_file,
    load_suite_file,
    shipped_benchmarks,
    shipped_rules,
    shipped_suites,
)
from eval_tasks.scoring import check_items, check_metric, metric_of, scorer_digest, scorer_version, validate_scorer
from eval_tasks.store import Store
from eval_tasks.tokenization import load_tokenizer

_log = logging.getLogger(__name__)

_RENDERED = 256
"""Items whose prompts are rendered at registration: the first, and a choice by hash that any edit may move."""


def register_benchmark(
    store: Store, path: Path, now: str | None = None, *, checkpoint_dir: Path | None = None
) -> BenchmarkVersion:
    """Check and register the benchmark in a YAML file. `now` is UTC in ISO 8601, None for the present.

    What looks wrong with the data is logged as warnings; `checkpoint_dir` holds a tokenizer, for the prompts' lengths.
    Raises UserError for anything wrong in the file, its data, templates or scorer; DriftError for other data than
    pinned; InfraError when data cannot be reached.
    """
    spec = load_benchmark_file(path)
    scorer = _checked_scorer(spec)
    dataset = load_dataset(spec, path.parent, kept=store.hub_files)
    check_items(scorer, dataset.items)
    benchmark = _benchmark(spec, scorer, dataset, now or datetime.now(UTC).isoformat(timespec="seconds"))
    _check_prompts(benchmark, dataset)
    for finding in findings_of(benchmark, dataset.items, dataset.few_shot, checkpoint_dir):
        _log.warning("benchmark %s: %s: %s", spec.name, finding.name, finding.message)
    return _save(store, benchmark, dataset)


def register_suite(store: Store, path: Path) -> Suite:
    """Register the suite in a YAML file; its benchmarks must be registered. Raises UserError with close names."""
    spec = load_suite_file(path)
    entries: list[SuiteEntry] = []
    for entry in spec.benchmarks:
        benchmark = store.catalog.benchmark(entry.name, entry.version)
        if entry.n_items is not None and entry.n_items > benchmark.n_items:
            raise UserError(
                f"{path}: n_items of {entry.name!r} is {entry.n_items}, and it has {benchmark.n_items} items; "
                "lower it, or leave it out to take all"
            )
        if any(other.benchmark_id == benchmark.benchmark_id for other in entries):
            raise UserError(f"{path}: {entry.name!r} has the same content as a benchmark before it; leave one out")
        entries.append(
            SuiteEntry(
                benchmark=benchmark.name,
                version=benchmark.version,
                benchmark_id=benchmark.benchmark_id,
                n_items=entry.n_items,
                seed=entry.seed,
            )
        )
    suite = Suite(name=spec.name, version=spec.version, tier=spec.tier, entries=tuple(entries))
    return store.catalog.save_suite(suite)


def register_rule(store: Store, rule: Path | RuleSpec, now: str) -> DecisionRule:
    """Register a decision rule, from a YAML file or as a spec, at `now` (UTC, ISO 8601).

    The same rule keeps its first time. Raises UserError when a benchmark of the rule is not registered, its scorer does
    not have the rule's metric that way up, or the name stands for another rule.
    """
    spec, where = (rule, rule.name) if isinstance(rule, RuleSpec) else (load_rule_file(rule), str(rule))
    record = spec.record(now)
    for name in record.benchmarks:
        benchmark = store.catalog.benchmark(name)
        metric = benchmark.primary_metric if record.metric == "primary" else record.metric
        info = metric_of(benchmark, metric)
        if info.higher_is_better != (record.direction == "higher"):
            better = "higher" if info.higher_is_better else "lower"
            raise UserError(f"{where}: {metric!r} of {name!r} is better when {better}; set 'direction: {better}'")
    return store.catalog.save_rule(record)


def register_shipped(store: Store, now: str) -> list[BenchmarkVersion]:
    """Register all benchmarks, suites and rules that ship with the package; the benchmarks, by name."""
    benchmarks = [register_benchmark(store, path, now) for path in shipped_benchmarks().values()]
    for path in shipped_suites().values():
        register_suite(store, path)
    for path in shipped_rules().values():
        register_rule(store, path, now)
    return benchmarks


def _checked_scorer(spec: BenchmarkSpec) -> ScorerRef:
    reasoning = spec.scorer.reasoning
    scorer = ScorerRef(
        name=spec.scorer.name,
        version=scorer_version(spec.scorer.name),
        parameters=dict(spec.scorer.parameters),
        reasoning=reasoning.record() if reasoning else None,
    )
    validate_scorer(scorer, spec.kind)
    for metric in (spec.primary_metric, *spec.plausible_range, *spec.plausible_change):
        check_metric(scorer.name, spec.sampling.record() if spec.sampling else None, metric)
    return scorer


def _benchmark(spec: BenchmarkSpec, scorer: ScorerRef, dataset: Dataset, now: str) -> BenchmarkVersion:
    template = spec.prompt.record()
    few_shot = spec.few_shot.record(dataset.few_shot_blake3) if spec.few_shot else None
    return BenchmarkVersion(
        name=spec.name,
        version=spec.version,
        kind=spec.kind,
        items_digest=items_digest(dataset.items),
        template_digest=template_digest(template, few_shot, dataset.few_shot),
        scorer_digest=scorer_digest(scorer),
        n_items=len(dataset.items),
        items_blob="",
        few_shot_blob=None,
        template=template,
        few_shot=few_shot,
        scorer=scorer,
        primary_metric=spec.primary_metric,
        licence=spec.licence,
        source=spec.source.record(dataset.source_blake3),
        created_at=now,
        decision_grade=spec.decision_grade,
        stratum_key=spec.item.stratum,
        cluster_key=spec.item.cluster,
        chance_level=spec.chance_level,
        plausible_range={metric: (low, high) for metric, (low, high) in spec.plausible_range.items()},
        plausible_change=dict(spec.plausible_change),
        max_tokens=spec.max_tokens,
        on_long_prompt=spec.on_long_prompt,
        hardware_class=spec.hardware_class,
        description=spec.description,
        sampling=spec.sampling.record() if spec.sampling else None,
        category_key=spec.item.category,
    )


def _save(store: Store, benchmark: BenchmarkVersion, dataset: Dataset) -> BenchmarkVersion:
    """Store items and record. A version that is registered with other content is refused before a blob is written."""
    for known in store.catalog.benchmarks():
        same_name = (known.name, known.version) == (benchmark.name, benchmark.version)
        if same_name and known.benchmark_id != benchmark.benchmark_id:
            return store.catalog.save_benchmark(benchmark)
    few_shot_blob = store.blobs.put_items(dataset.few_shot) if dataset.few_shot else None
    items_blob = store.blobs.put_items(dataset.items)
    return store.catalog.save_benchmark(replace(benchmark, items_blob=items_blob, few_shot_blob=few_shot_blob))


def _check_prompts(benchmark: BenchmarkVersion, dataset: Dataset) -> None:
    """Render some prompts. Raises UserError naming the item and the part of the template that failed."""
    shots = Shots(benchmark.name, benchmark.few_shot, dataset.few_shot)
    composer = Composer(benchmark.name, benchmark.kind, benchmark.template, shots)
    scores_choices_alone = benchmark.kind == "choice" and not benchmark.template.item
    sample = sorted(dataset.items, key=lambda item: digest_parts(["render", item.item_id]))
    for item in [*dataset.items[:1], *sample[:_RENDERED]]:
        prompt = composer.prompt(item)
        if not prompt.context.strip() and not scores_choices_alone:
            raise UserError(
                f"benchmark {benchmark.name!r}, item {item.item_id!r}: the prompt is empty; see prompt.item"
            )


def findings_of(
    benchmark: BenchmarkVersion, items: Sequence[Item], few_shot: Sequence[Item], checkpoint_dir: Path | None = None
) -> list[Finding]:
    """What looks wrong with a benchmark's data; with a checkpoint's folder, also prompts that its context cuts.

    Raises UserError when prompts are too long and the benchmark refuses to cut them.
    """
    findings = data_findings(benchmark, items)
    if checkpoint_dir is None:
        return findings
    context = max_context(read_config(checkpoint_dir))
    builder = PromptBuilder(benchmark, few_shot, load_tokenizer(checkpoint_dir), EngineConfig(), context)
    cut = [request.item_id for request in builder.requests(items) if request.prompt_truncated]
    if cut:
        more = f" and {len(cut) - 3} more" if len(cut) > 3 else ""
        findings.append(
            Finding(
                name="long_prompts",
                message=f"{len(cut)} of {len(items)} prompts are beyond the {context} tokens of {checkpoint_dir} and "
                f"will be cut: {', '.join(map(repr, cut[:3]))}{more}",
            )
        )
    return findings
