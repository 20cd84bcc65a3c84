"""Commands on suites and decision rules."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.records import DecisionRule, to_json
from eval_tasks.register import register_rule, register_suite

_yaml = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("suites")
def suites_group() -> None:
    """Register and list suites."""


@suites_group.command("register")
@click.argument("files", nargs=-1, required=True, type=_yaml)
def suites_register(files: tuple[Path, ...]) -> None:
    """Register suites from YAML FILES."""
    store = opened()
    for file in files:
        suite = register_suite(store, file)
        click.echo(
            f"{suite.name}@{suite.version}: {len(suite.entries)} benchmarks, tier {suite.tier}, id {suite.suite_id}"
        )


@suites_group.command("list")
@json_option
def suites_list(as_json: bool) -> None:
    """List registered suites."""
    suites = opened().catalog.suites()
    if as_json:
        print_json([to_json(s) | {"suite_id": s.suite_id} for s in suites])
        return
    rows = [
        (s.name, s.version, s.tier, ", ".join(f"{e.benchmark}@{e.version}" for e in s.entries), s.suite_id[:12])
        for s in suites
    ]
    print_table("suites", ("name", "version", "tier", "benchmarks", "id"), rows)


@click.group("rules")
def rules_group() -> None:
    """Register, list and show decision rules: what was decided before the run."""


@rules_group.command("register")
@click.argument("files", nargs=-1, required=True, type=_yaml)
def rules_register(files: tuple[Path, ...]) -> None:
    """Register decision rules from YAML FILES, with the present time."""
    store = opened()
    for file in files:
        rule = register_rule(store, file, datetime.now(UTC).isoformat(timespec="seconds"))
        click.echo(f"{rule.name}: {rule.kind} on {rule.metric}, registered {rule.registered_at}, id {rule.rule_id}")


@rules_group.command("list")
@json_option
def rules_list(as_json: bool) -> None:
    """List registered rules."""
    rules = opened().catalog.rules()
    if as_json:
        print_json([to_json(r) | {"rule_id": r.rule_id} for r in rules])
        return
    rows = [(r.name, r.kind, r.metric, _decides(r), r.alpha, r.multiplicity, r.seeds, r.registered_at) for r in rules]
    columns = ("name", "kind", "metric", "decides", "alpha", "multiplicity", "seeds", "registered (UTC)")
    print_table("decision rules", columns, rows)


def _decides(rule: DecisionRule) -> str:
    """What decides: a weighted composite, or several benchmarks apart."""
    return ", ".join(rule.primary or (f"{w:g} x {b}" for b, w in rule.components.items()))


@rules_group.command("show")
@click.argument("name")
def rules_show(name: str) -> None:
    """Show one rule as JSON."""
    rule = opened().catalog.rule(name)
    print_json(to_json(rule) | {"rule_id": rule.rule_id})


COMMANDS = (suites_group, rules_group)
