"""Commands on benchmarks: write, import, register, check, show and compare them."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, to_json
from eval_tasks.records.benchmark import Kind
from eval_tasks.register import findings_of, register_benchmark, register_shipped
from eval_tasks.registry import hub_benchmarks, starter
from eval_tasks.store import Store

if TYPE_CHECKING:
    from eval_tasks.compare.instruments import InstrumentDifference

_yaml = click.Path(exists=True, dir_okay=False, path_type=Path)
_checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder with a tokenizer and config.json: prompts beyond its context are told.",
)

_REFUSALS_SHOWN = 10


@click.group("benchmarks")
def benchmarks_group() -> None:
    """Write, register, list, show and compare benchmark versions."""


@benchmarks_group.command("register")
@click.argument("files", nargs=-1, type=_yaml)
@click.option("--shipped", is_flag=True, help="Register the benchmarks, suites and rules that ship.")
@click.option("--hub", "hub", multiple=True, help="One whose data is on the hub: mmlu, gsm8k, arc-easy ... Repeatable.")
@_checkpoint_option
@json_option
def benchmarks_register(
    files: tuple[Path, ...], shipped: bool, hub: tuple[str, ...], checkpoint: Path | None, as_json: bool
) -> None:
    """Register benchmarks from YAML FILES. The same content again is a no-op; other content needs another version."""
    if not files and not shipped and not hub:
        raise click.UsageError("name at least one YAML file, or --shipped, or --hub NAME")
    known = hub_benchmarks()
    if unknown := [name for name in hub if name not in known]:
        raise UserError(f"no benchmark {unknown[0]!r} of the hub ships; {did_you_mean(unknown[0], known)}")
    store = opened()
    registered = register_shipped(store, datetime.now(UTC).isoformat(timespec="seconds")) if shipped else []
    registered += [
        register_benchmark(store, file, checkpoint_dir=checkpoint) for file in (*files, *map(known.__getitem__, hub))
    ]
    if as_json:
        print_json([to_json(b) | {"benchmark_id": b.benchmark_id} for b in registered])
        return
    for benchmark in registered:
        click.echo(f"{benchmark.name}@{benchmark.version}: {benchmark.n_items} items, id {benchmark.benchmark_id}")


@benchmarks_group.command("list")
@json_option
def benchmarks_list(as_json: bool) -> None:
    """List registered benchmark versions."""
    benchmarks = opened().catalog.benchmarks()
    if as_json:
        print_json([to_json(b) | {"benchmark_id": b.benchmark_id} for b in benchmarks])
        return
    print_table(
        "benchmarks",
        ("name", "version", "kind", "items", "metric", "grade", "id"),
        [
            (
                b.name,
                b.version,
                b.kind,
                b.n_items,
                b.primary_metric,
                "decision" if b.decision_grade else "public",
                b.benchmark_id[:12],
            )
            for b in benchmarks
        ],
    )


@benchmarks_group.command("show")
@click.argument("name")
@click.option("--version", default=None, help="Default: the newest.")
def benchmarks_show(name: str, version: str | None) -> None:
    """Show one benchmark version as JSON: template, digests, scorer, plausible range."""
    benchmark = opened().catalog.benchmark(name, version)
    print_json(to_json(benchmark) | {"benchmark_id": benchmark.benchmark_id})


@benchmarks_group.command("new")
@click.argument("name")
@click.option("--kind", type=click.Choice(["choice", "generation", "loss"]), required=True)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Default: here.")
def benchmarks_new(name: str, kind: Kind, folder: Path) -> None:
    """Write NAME.yaml and NAME.jsonl: a small benchmark that registers as it is, with comments that explain."""
    files = starter(name, kind)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.jsonl": files.data, folder / f"{name}.yaml": files.yaml}
    for path in paths:
        if path.exists():
            raise UserError(f"{path} exists, and nothing is overwritten; choose another name or --folder")
    for path, text in paths.items():
        path.write_text(text, "utf-8")
        click.echo(f"wrote {path}")
    click.echo(f"register it: python -m eval_tasks benchmarks register {folder / name}.yaml")


@benchmarks_group.command("check")
@click.argument("name")
@_checkpoint_option
@json_option
def benchmarks_check(name: str, checkpoint: Path | None, as_json: bool) -> int:
    """Look for faults in the data of NAME or NAME@VERSION: duplicates, tells of the gold answer, damage, long prompts.

    Exit code 1 when there is something to look at.
    """
    store = opened()
    benchmark = _version(store, name)
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    findings = findings_of(benchmark, store.blobs.get_items(benchmark.items_blob), shots, checkpoint)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{finding.name}: {finding.message}")
        if not findings:
            click.echo(f"{benchmark.name}@{benchmark.version}: nothing found in {benchmark.n_items} items")
    return int(bool(findings))


@benchmarks_group.command("diff")
@click.argument("a")
@click.argument("b")
@json_option
def benchmarks_diff(a: str, b: str, as_json: bool) -> int:
    """Show what differs from benchmark A to B, and what of their scores can be compared. Each is NAME or NAME@VERSION.

    Exit code 0 when they are the same instrument, 1 when not.
    """
    from eval_tasks.compare.instruments import difference

    store = opened()
    found = difference(store, _version(store, a), _version(store, b))
    if as_json:
        print_json(asdict(found))
    else:
        _print_difference(found)
    return int(found.level != "SCORE")


@benchmarks_group.command("import-lm-eval")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=None, help="Folder for the YAML files."
)
@click.option("--dry-run", is_flag=True, help="Write nothing, only say what would come of it.")
@click.option("--revision", "revisions", multiple=True, help="DATASET=COMMIT: pin a hub data set. Repeatable.")
@click.option("--num-fewshot", type=click.IntRange(min=0), default=None, help="Default: as each task says.")
@json_option
def benchmarks_import(
    path: Path, out: Path | None, dry_run: bool, revisions: tuple[str, ...], num_fewshot: int | None, as_json: bool
) -> int:
    """Make benchmarks of tasks of lm-evaluation-harness: PATH is a task's YAML file, or a folder of them.

    No code of theirs is run and nothing is downloaded. A task that needs code is refused by name. Exit code 1 when none
    became a benchmark.
    """
    from eval_tasks.lm_eval_tasks import Options, import_tasks

    if (out is None) != dry_run:
        raise click.UsageError("give --out FOLDER, or --dry-run to write nothing")
    options = Options(revisions=_revisions(revisions), num_fewshot=num_fewshot)
    found = import_tasks(path, out, options)
    if as_json:
        notes = [{"name": c.name, "task": c.task, "notes": list(c.notes)} for c in found.converted]
        refused = [asdict(r) for r in found.refused]
        print_json({"converted": notes, "refused": refused, "suites": found.suites, "unpinned": found.unpinned})
        return int(not found.converted)
    n = len(found.converted) + len(found.refused)
    click.echo(f"{len(found.converted)} of {n} tasks became benchmarks, in {len(found.suites)} suites")
    if found.refused and n <= _REFUSALS_SHOWN:
        for each in found.refused:
            click.echo(f"  refused {each.task}: {each.field}: {each.reason}")
    elif found.refused:
        print_table("refused (--json names each)", ("tasks", "why"), found.reasons())
    if found.unpinned:
        click.echo(
            f"{len(found.unpinned)} hub data sets want a revision before they register: --revision DATASET=COMMIT"
        )
    return int(not found.converted)


def _revisions(given: tuple[str, ...]) -> dict[str, str]:
    revisions = {}
    for text in given:
        dataset, _, commit = text.partition("=")
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise UserError(
                f"--revision {text!r}: give DATASET=COMMIT with the 40 characters of a commit, never a branch"
            )
        revisions[dataset] = commit
    return revisions


def _version(store: Store, text: str) -> BenchmarkVersion:
    """NAME (the newest) or NAME@VERSION."""
    name, at, version = text.partition("@")
    return store.catalog.benchmark(name, version if at else None)


def _print_difference(found: InstrumentDifference) -> None:
    from eval_tasks.compare.instruments import difference_lines

    click.echo("\n".join(difference_lines(found)))


COMMANDS = (benchmarks_group,)
