"""Every name that a user writes or meets is in docs/ or the README: settings, benchmark fields, commands, reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel

from eval_tasks.checkpoint import REASONS
from eval_tasks.cli.main import _EXIT_CODES as EXIT_CODES
from eval_tasks.cli.main import cli
from eval_tasks.engine.architectures import VERIFIED
from eval_tasks.registry.benchmark_spec import BenchmarkSpec
from eval_tasks.registry.judge_spec import FIELDS, JudgeSpec
from eval_tasks.registry.rule_spec import RuleSpec
from eval_tasks.registry.seed_study_spec import SeedStudySpec
from eval_tasks.registry.suite_spec import SuiteSpec
from eval_tasks.scoring import scorer_metrics, scorer_names
from eval_tasks.scoring.registry import find_scorer
from eval_tasks.settings import Config, Settings

REPOSITORY = Path(__file__).parents[2]


@cache
def text(*names: str) -> str:
    return "\n".join((REPOSITORY / name).read_text("utf-8") for name in names)


def everything() -> str:
    names = ["README.md", *sorted(str(p.relative_to(REPOSITORY)) for p in (REPOSITORY / "docs").glob("*.md"))]
    return text(*names)


def in_code(document: str) -> set[str]:
    """The names that stand in backticks."""
    spans = re.findall(r"`([^`\n]+)`", document)
    return {word for span in spans for word in re.split(r"[\s=:,]+", span)} | set(spans)


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and every model in its fields."""
    yield model
    for field in model.model_fields.values():
        for found in nested(field.annotation):
            yield from models(found)


def nested(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from nested(argument)


def fields(model: type[BaseModel]) -> set[str]:
    return {name for found in models(model) for name in found.model_fields}


def test_every_variable() -> None:
    names = {field.alias or f"CHECKPOINT_EVAL_{name.upper()}" for name, field in Settings.model_fields.items()}
    assert names - in_code(text("docs/configuration.md")) == set()


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (Config, "docs/configuration.md"),
        (BenchmarkSpec, "docs/benchmarks.md"),
        (SuiteSpec, "docs/benchmarks.md"),
        (RuleSpec, "docs/verdicts.md"),
        (JudgeSpec, "docs/graders.md"),
        (SeedStudySpec, "docs/verdicts.md"),
    ],
)
def test_every_field(model: type[BaseModel], document: str) -> None:
    assert len(fields(model)) > 4
    assert fields(model) - in_code(text(document)) == set()


@pytest.mark.parametrize("model", [BenchmarkSpec, SuiteSpec, RuleSpec, JudgeSpec, Config])
def test_every_value_that_a_field_may_have(model: type[BaseModel]) -> None:
    values = {
        value
        for found in models(model)
        for field in found.model_fields.values()
        for value in literals(field.annotation)
    }
    assert values
    assert values - in_code(everything()) == set()


def literals(annotation: Any) -> Iterator[str]:
    for argument in get_args(annotation):
        if isinstance(argument, str):
            yield argument
        else:
            yield from literals(argument)


def commands() -> list[str]:
    context = click.Context(cli)
    found = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        is_group = isinstance(command, click.Group)
        found += [f"{name} {sub}" for sub in command.commands] if isinstance(command, click.Group) else []
        found += [name] if not is_group or command.invoke_without_command else []
    return found


def test_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", text("docs/commands.md"), re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(documented) == sorted(commands())


def test_every_field_that_a_judge_may_read() -> None:
    assert set(FIELDS) - in_code(text("docs/graders.md")) == set()


def test_every_exit_code() -> None:
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", text("docs/commands.md"), re.MULTILINE)}
    assert {code for _, code in EXIT_CODES} <= documented


def test_every_scorer_metric_and_parameter() -> None:
    names = set(scorer_names())
    for scorer in scorer_names():
        names |= {*scorer_metrics(scorer), *find_scorer(scorer).parameters}
    assert names - in_code(text("docs/benchmarks.md")) == set()


def test_every_reason_and_whether_it_waits() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (waits|broken) \|$", text("docs/checkpoints.md"), re.MULTILINE))
    expected = {n: "waits" if r.heals else "broken" for n, r in REASONS.items() if r.found_by == "listing"}
    assert rows == expected
    assert REASONS.keys() - in_code(text("docs/checkpoints.md")) == set()


def test_every_family_of_the_engine() -> None:
    assert set(VERIFIED) - in_code(text("docs/engine.md")) == set()


def test_every_default_of_the_configuration() -> None:
    """A default that is a number, or short text, stands in the row of its field."""
    document = text("docs/configuration.md")
    for model in models(Config):
        for name, field in model.model_fields.items():
            default = field.default
            if isinstance(default, bool) or not isinstance(default, int | float | str) or name == "pattern":
                continue
            rows = re.findall(rf"^\| [^|]*`{name}`[^|]*\|([^|]*)\|", document, re.MULTILINE)
            assert any(f"{default:g}" if isinstance(default, float) else str(default) in row for row in rows), name


def test_every_link_leads_somewhere() -> None:
    for path in (REPOSITORY / "docs").glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"
