"""`diagnose`: which items flipped between two runs, and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from eval_tasks.cli.output import json_option, opened, out_option, print_json, print_table
from eval_tasks.compare import compare, compare_files, diagnose, diagnose_files
from eval_tasks.errors import UserError
from eval_tasks.publish import comparison_view
from eval_tasks.records import to_json
from eval_tasks.report import report_html
from eval_tasks.report.flips import ShownDiagnosis, shown_diagnoses


@click.command("diagnose")
@click.argument("a")
@click.argument("b")
@click.option("--scores", is_flag=True, help="A and B are JSONL files of item_id, score, and category, cluster if any.")
@click.option("--benchmark", default=None, help="Only this benchmark.")
@click.option("--items", type=click.IntRange(min=0), default=20, show_default=True, help="Most items shown of each.")
@click.option("--grader", default=None, help="Whose scores, as compare takes it. Default: the latest common scorer.")
@out_option("Also write the comparison's HTML report, with this diagnosis, to this file.")
@json_option
def diagnose_command(
    a: str, b: str, scores: bool, benchmark: str | None, items: int, grader: str | None, out: Path | None, as_json: bool
) -> None:
    """Where candidate A and baseline B disagree: groups that lost most first, then items side by side."""
    if scores and grader:
        raise UserError("--grader chooses among a run's graders; files of --scores have none")
    if scores:
        store = None
        found = diagnose_files(Path(a), Path(b), benchmark=benchmark, n_items=items)
        comparison = compare_files(Path(a), Path(b)) if out else None
    else:
        store = opened()
        run_a, run_b = store.catalog.run(a).run_id, store.catalog.run(b).run_id
        found = diagnose(store, run_a, run_b, benchmark=benchmark, n_items=items, grader=grader)
        comparison = compare(store, run_a, run_b, grader=grader) if out else None
    if out and comparison:
        view = replace(comparison_view(store, comparison), diagnoses=tuple(found))
        out.write_text(report_html(view), "utf-8")
    if as_json:
        print_json([to_json(d) for d in found])
        return
    for shown in shown_diagnoses(found):
        _print(shown)


def _print(shown: ShownDiagnosis) -> None:
    click.echo(shown.title)
    for sentence in shown.sentences:
        click.echo(sentence)
    for table in shown.tables:
        print_table(table.caption, [c.heading for c in table.columns], table.rows)
    for item in shown.items:
        click.echo(item.headline)
        for name, text in item.parts:
            click.echo(f"  {name}: " + text.replace("\n", "\n    "))


COMMANDS = (diagnose_command,)
