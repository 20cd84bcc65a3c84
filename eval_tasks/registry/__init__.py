"""Benchmarks, suites and decision rules as YAML files: read, checked, and listed where they ship with the package."""

from eval_tasks.registry.benchmark_spec import (
    BenchmarkSpec,
    FewShotSpec,
    ItemSpec,
    PromptSpec,
    ScorerSpec,
    SourceSpec,
    load_benchmark_file,
)
from eval_tasks.registry.judge_spec import JudgeSpec, load_judge_file
from eval_tasks.registry.rule_spec import RuleSpec, load_rule_file
from eval_tasks.registry.seed_study_spec import SeedStudySpec, load_seed_study_file
from eval_tasks.registry.shipped import hub_benchmarks, shipped_benchmarks, shipped_rules, shipped_suites
from eval_tasks.registry.starters import Starter, starter
from eval_tasks.registry.suite_spec import SuiteEntrySpec, SuiteSpec, load_suite_file
from eval_tasks.registry.templates import Rendering, is_template, literal, names_in, render_choices

__all__ = [
    "BenchmarkSpec",
    "FewShotSpec",
    "ItemSpec",
    "JudgeSpec",
    "PromptSpec",
    "Rendering",
    "RuleSpec",
    "ScorerSpec",
    "SeedStudySpec",
    "SourceSpec",
    "Starter",
    "SuiteEntrySpec",
    "SuiteSpec",
    "hub_benchmarks",
    "is_template",
    "literal",
    "load_benchmark_file",
    "load_judge_file",
    "load_rule_file",
    "load_seed_study_file",
    "load_suite_file",
    "names_in",
    "render_choices",
    "shipped_benchmarks",
    "shipped_rules",
    "shipped_suites",
    "starter",
]
