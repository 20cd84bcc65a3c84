"""`seeds`: what training again with another seed does to the scores."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.compare.chosen_study import study_named
from eval_tasks.compare.scale import words
from eval_tasks.compare.studies import import_study, record_study
from eval_tasks.records import SeedStudy, StudiedBenchmark, to_json
from eval_tasks.registry import load_seed_study_file
from eval_tasks.report.numbers import ABSENT, amount, count, deviation


@click.group("seeds")
def seeds_group() -> None:
    """Seed studies: how far runs of one recipe with other training seeds lie apart."""


@seeds_group.command("record")
@click.argument("name")
@click.argument("runs", nargs=-1, required=True)
@click.option("--tokens", type=click.IntRange(min=1), default=None, help="What each was trained on, in tokens.")
@json_option
def seeds_record(name: str, runs: tuple[str, ...], tokens: int | None, as_json: bool) -> None:
    """Measure a study NAME from RUNS of one recipe (three or more, each of its own training run and seed)."""
    found = record_study(opened(), name, runs, now=_now(), tokens=tokens)
    for reason in found.left_out:
        click.echo(f"left out: {reason}", err=True)
    _show(found.study, as_json)


@seeds_group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def seeds_import(file: Path, as_json: bool) -> None:
    """Import a study from a YAML FILE: published figures, or names of files of item scores, one a run."""
    _show(import_study(opened(), load_seed_study_file(file), file.parent, now=_now()), as_json)


@seeds_group.command("list")
@json_option
def seeds_list(as_json: bool) -> None:
    """List seed studies, all versions."""
    studies = opened().catalog.seed_studies()
    if as_json:
        print_json([_document(study) for study in studies])
        return
    rows = [
        (s.reference, _runs(s), words(s.scale), len(s.benchmarks), s.measured_at, s.origin, s.source) for s in studies
    ]
    print_table("seed studies", ("study", "runs", "scale", "metrics", "measured", "origin", "source"), rows)


@seeds_group.command("show")
@click.argument("study")
@json_option
def seeds_show(study: str, as_json: bool) -> None:
    """Show one STUDY (NAME or NAME@VERSION): each benchmark's spread, and what of it its items share."""
    _show(study_named(opened(), study), as_json)


def _show(study: SeedStudy, as_json: bool) -> None:
    if as_json:
        print_json(_document(study))
        return
    click.echo(f"{study.reference}: {_runs(study)} runs, {words(study.scale)}, measured {study.measured_at}")
    click.echo(f"{study.origin}: {study.source}")
    rows = [
        (
            f"{b.benchmark}@{b.version} {b.metric}" if b.version else f"{b.benchmark} {b.metric}",
            f"{b.n_seeds} x {count(b.n)}",
            ABSENT if not b.scores else amount(math.fsum(b.scores) / len(b.scores), b.unit),
            _sd(b.s2_raw, b.unit),
            _disagree(b),
            _sd(b.flip_variance, b.unit),
            _sd(_common(b), b.unit),
        )
        for b in study.benchmarks
    ]
    columns = ("benchmark", "runs x items", "mean", "SD", "two disagree", "SD of flips", "SD in common")
    print_table("spread over training seeds, in points where no unit is named", columns, rows)


def _sd(variance: float, unit: str) -> str:
    return deviation(math.sqrt(variance), unit).removesuffix(" points")


def _disagree(b: StudiedBenchmark) -> str:
    if b.flips == 0 and b.psi_seed == 0:
        return "not known"
    return f"{100 * b.psi_seed:.1f} %" if b.unit == "fraction" else f"{b.psi_seed:.3g}"


def _common(b: StudiedBenchmark) -> float:
    return max(0.0, b.s2_raw - b.flip_variance)


def _runs(study: SeedStudy) -> str:
    numbers = sorted({b.n_seeds for b in study.benchmarks})
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _document(study: SeedStudy) -> dict[str, Any]:
    return to_json(study) | {"study_id": study.study_id, "reference": study.reference}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


COMMANDS = (seeds_group,)
