"""`regrade`: the stored outputs of many runs under another grader, in this process, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from eval_tasks.aggregate import aggregate
from eval_tasks.cli.judging import judge_here
from eval_tasks.cli.output import json_option, opened, out_option, print_json, print_table
from eval_tasks.compare import label_of
from eval_tasks.errors import UserError
from eval_tasks.graders import (
    Cost,
    Grading,
    Window,
    forecast,
    gradings,
    keep_moves,
    moment,
    moved_scores,
    runs_in,
)
from eval_tasks.guard import guard
from eval_tasks.join_contamination import join_contamination
from eval_tasks.records.regrade import MovedScores
from eval_tasks.report import regrade_html, regrade_json, regrade_text
from eval_tasks.report.numbers import count, duration
from eval_tasks.settings import Config, Settings, load_config
from eval_tasks.store import Store


@click.command("regrade")
@click.argument("runs", nargs=-1)
@click.option(
    "--grader",
    required=True,
    help="A judge's NAME or NAME@VERSION, a scorer's name, or 'own': each benchmark's own scorer as of this release.",
)
@click.option("--since", default="", help="Runs that began at this time or later: 2026-01-31, or with time and zone.")
@click.option("--until", default="", help="Runs that began before this time; a date counts whole.")
@click.option("--training-run", default="", help="Only runs of this training run.")
@click.option("--suite", default="", help="Only runs of this suite, NAME or NAME@VERSION.")
@click.option("--tier", type=click.Choice(["health", "selection", "release"]), default=None)
@click.option("--benchmark", default="", help="Only this benchmark; a scorer that is not its own is a second opinion.")
@click.option("--against", default=None, help="Whose scores are the old ones. Default: the version before, or scorer.")
@click.option("--environment", default=None, help="Of a judge. Default: the first live one that its engine fits.")
@click.option("--dry-run", is_flag=True, help="Only list the runs and what each would cost; nothing is written.")
@out_option("Also write the report of what moved, as HTML, to this file.")
@json_option
def regrade_command(
    runs: tuple[str, ...],
    grader: str,
    since: str,
    until: str,
    training_run: str,
    suite: str,
    tier: str | None,
    benchmark: str,
    against: str | None,
    environment: str | None,
    dry_run: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Score the stored outputs of closed runs by another grader, and say what moved.

    RUNS are run ids or their beginnings; without any, all runs of the window. Evaluated models never run, and earlier
    scores stay. The same again scores nothing anew and shows the same report.
    """
    store = opened()
    window = Window(
        since=moment(since) if since else None,
        until=moment(until, end=True) if until else None,
        training_run=training_run,
        suite=suite,
        tier=tier or "",
        benchmark=benchmark,
        run_ids=runs,
    )
    work = [grading for run in runs_in(store, window) for grading in gradings(store, run, grader, benchmark)]
    if not work:
        raise UserError(
            f"no closed run in the window has a benchmark for grader {grader!r} (see runs list); a scorer scores the "
            "benchmarks that have it as their own, and as a second opinion the one that --benchmark names"
        )
    if dry_run:
        _tell_cost([(grading, forecast(store, grading)) for grading in work], as_json)
        return
    moved = _regrade(store, load_config(Settings().config), work, environment, against)
    if out:
        out.write_text(regrade_html(moved), "utf-8")
    if as_json:
        print_json(regrade_json(moved))
    else:
        click.echo(regrade_text(moved), nl=False)
        n_new = sum(not grading.done for grading in work)
        click.echo(f"{len(work)} benchmarks of runs, {n_new} scored now, {len(work) - n_new} before")


def _regrade(
    store: Store, config: Config, work: Sequence[Grading], environment: str | None, against: str | None
) -> list[MovedScores]:
    """Run by run, so that one that fails leaves those before it done."""
    moved: list[MovedScores] = []
    for run_id in dict.fromkeys(grading.run.run_id for grading in work):
        mine = [grading for grading in work if grading.run.run_id == run_id]
        references = [judge_here(store, config, run_id, g.benchmark.name, g.asked, environment) for g in mine]
        if any(g.is_own for g in mine):
            _settle(store, run_id)
        of_run = [
            moved_scores(store, g.run, g.benchmark, reference, against=against)
            for g, reference in zip(mine, references, strict=True)
        ]
        keep_moves(store, run_id, of_run, _now())
        moved += of_run
    return moved


def _settle(store: Store, run_id: str) -> None:
    """The newest version of its own scorer is what a run's numbers come from. Again it changes nothing."""
    aggregate(store, run_id)
    join_contamination(store, run_id=run_id)
    guard(store, run_id=run_id, now=_now())


def _tell_cost(work: Sequence[tuple[Grading, Cost]], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "run_id": g.run.run_id,
                    "benchmark": g.benchmark.name,
                    "grader": g.grader.grader,
                    "done": g.done,
                    "n_outputs": cost.n_outputs,
                    "n_questions": cost.n_questions,
                    "about_tokens": cost.about_tokens,
                    "seconds": cost.seconds,
                }
                for g, cost in work
            ]
        )
        return
    rows = [
        (f"{label_of(g.run)}\n{g.run.run_id[:12]}", g.run.created_at, g.benchmark.name, g.grader.grader, _left(g, cost))
        for g, cost in work
    ]
    print_table("regrade, dry run", ("run", "began (UTC)", "benchmark", "grader", "left to do"), rows)
    costs = [cost for _, cost in work]
    click.echo(
        f"{sum(not g.done for g, _ in work)} of {len(work)} to do: {count(sum(c.n_outputs for c in costs))} outputs, "
        f"{count(sum(c.n_questions for c in costs))} questions to a judge, about "
        f"{count(sum(c.about_tokens for c in costs))} tokens"
    )


def _left(grading: Grading, cost: Cost) -> str:
    if grading.done:
        return "nothing"
    left = f"{count(cost.n_outputs)} outputs"
    if grading.grader.judge is None:
        return left
    time = "" if cost.seconds is None else f", {duration(cost.seconds)} of a pod"
    return f"{left}\n{count(cost.n_questions)} questions, about {count(cost.about_tokens)} tokens{time}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


COMMANDS = (regrade_command,)
