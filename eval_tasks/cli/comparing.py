"""`compare`: two runs of the store, or two plain files of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from eval_tasks.cli.output import json_option, opened, out_option, print_json, report_width
from eval_tasks.compare import compare, compare_files, diagnose_files, keep_diagnoses
from eval_tasks.errors import UserError
from eval_tasks.publish import comparison_view
from eval_tasks.records import Comparison, DecisionRule
from eval_tasks.registry import load_rule_file
from eval_tasks.report import comparison_json, comparison_schema, report_html, report_schema, terminal_text
from eval_tasks.store import Store


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option(
    "--scores", is_flag=True, help="A and B are JSONL files of item_id, score, and optionally benchmark, cluster."
)
@click.option("--rule", default=None, help="A registered rule's name, or a rule's YAML file.")
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(["b-better", "indistinguishable", "not-a-better"]),
    default=None,
    help="Exit with 1 on this verdict.",
)
@click.option(
    "--grader",
    default=None,
    help="Whose scores of both arms: NAME, NAME@VERSION or all of it. Default: the latest common scorer.",
)
@click.option(
    "--seed-study", default=None, help="NAME or NAME@VERSION of the study that answers for recipes trained apart."
)
@out_option("Also write an HTML report to this file.")
@json_option
def compare_command(
    a: str,
    b: str,
    scores: bool,
    rule: str | None,
    alpha: float,
    fail_on: str | None,
    grader: str | None,
    seed_study: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare candidate A with baseline B, item by item: delta = A - B.

    An arm may be several runs of one recipe, RUN,RUN,RUN (three or more), each trained with its own seed. RUN@SEED
    names the seed; runs of one seed in both arms are held against each other. With --scores the same of files.

    Exit codes: 0 with a verdict, 1 when --fail-on strikes, 2 bad input, 3 not comparable.
    """
    if scores and grader:
        raise UserError("--grader chooses among a run's graders; files of --scores have none")
    if scores and seed_study:
        raise UserError("--seed-study is of the catalog, and files of --scores name no training run; compare runs")
    if scores:
        store = None
        (files_a, seeds_a), (files_b, seeds_b) = _arm(a, Path.exists), _arm(b, Path.exists)
        comparison = compare_files(
            [Path(name) for name in files_a],
            [Path(name) for name in files_b],
            rule=_rule_of(rule) if rule else None,
            alpha=alpha,
            seeds=(seeds_a, seeds_b),
        )
    else:
        store = opened()
        registered = _registered(store, rule) if rule else None
        (runs_a, seeds_a), (runs_b, seeds_b) = _arm(a), _arm(b)
        comparison = compare(
            store,
            runs_a,
            runs_b,
            rule=registered,
            alpha=alpha,
            grader=grader,
            seeds=(seeds_a, seeds_b),
            seed_study=seed_study,
        )
        if out and not comparison.further_a:
            comparison = keep_diagnoses(store, comparison)
    view = comparison_view(store, comparison)
    if scores and out and not comparison.further_a:
        view = replace(view, diagnoses=tuple(diagnose_files(Path(a), Path(b))))
    if out:
        out.write_text(report_html(view), "utf-8")
    if as_json:
        print_json(comparison_json(comparison, view.diagnoses))
    else:
        click.echo(terminal_text(view, report_width()))
    return 1 if _strikes(comparison, fail_on) else 0


def _arm(text: str, is_file: Callable[[Path], bool] = lambda _: False) -> tuple[list[str], list[str]]:
    """``RUN,RUN@SEED`` as runs (or files) and training seeds; no seeds where none is named.

    A file's own name may have commas and at signs in it.
    """
    if is_file(Path(text)):
        return [text], []
    parts = [part.strip() for part in text.split(",")]
    split = [(part, "") if is_file(Path(part)) or "@" not in part else part.rsplit("@", 1) for part in parts]
    if any(not run for run, _ in split):
        raise UserError(f"{text!r}: an empty run among the arm's; write RUN,RUN,RUN or RUN@SEED,RUN@SEED,RUN@SEED")
    seeds = [seed for _, seed in split]
    return [run for run, _ in split], seeds if any(seeds) else []


def _registered(store: Store, rule: str) -> DecisionRule:
    """By name, or from a file, which binds only when the catalog has the same rule."""
    return _rule_of(rule) if rule.endswith((".yaml", ".yml")) else store.catalog.rule(rule)


def _rule_of(path: str) -> DecisionRule:
    """The rule in a YAML file; on plain files nobody can know when it was written, so its time stays empty."""
    return load_rule_file(Path(path)).record("")


def _strikes(comparison: Comparison, fail_on: str | None) -> bool:
    """Whether the comparison ends as `fail_on` says. One tested benchmark decides alone; several need a rule.

    Without a rule too it is the recipes that count where they have an answer.
    """
    if fail_on is None:
        return False
    recipes = comparison.recipes
    if recipes is not None and recipes.answerable:
        tested = [test.verdict for test in recipes.tests if not test.not_answerable]
    else:
        tested = [test.verdict for test in comparison.tests if not test.not_tested]
    verdict = comparison.verdict or (tested[0] if len(tested) == 1 else None)
    if verdict is None:
        raise UserError(
            f"--fail-on {fail_on} has no verdict to look at: {len(tested)} benchmarks were tested and no rule says "
            "which decides; name one with --rule"
        )
    return {
        "b-better": verdict == "B better",
        "indistinguishable": verdict == "INDISTINGUISHABLE",
        "not-a-better": verdict != "A better",
    }[fail_on]


@click.command("schema")
@click.argument("document", type=click.Choice(["comparison", "report"]))
def schema_command(document: str) -> None:
    """Print the JSON Schema of `compare --json` (comparison) or of a published JSON report (report)."""
    print_json({"comparison": comparison_schema, "report": report_schema}[document]())


COMMANDS = (compare_command, schema_command)
