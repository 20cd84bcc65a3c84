"""`power`: what a comparison could find, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.compare.planned import PlannedBenchmark, plan_resolution
from eval_tasks.errors import UserError
from eval_tasks.report.numbers import ABSENT, count
from eval_tasks.stats.planning import binary_resolution, seeds_mde, seeds_needed

_ASSUMED = 0.10


@click.command("power")
@click.argument("suites", nargs=-1)
@click.option("--items", type=click.IntRange(min=1), multiple=True, help="Numbers of items instead of suites.")
@click.option(
    "--discordance",
    type=float,
    default=_ASSUMED,
    show_default=True,
    help="Share of items two runs disagree on, where no past comparison shows it.",
)
@click.option("--target-points", type=float, default=None, help="The difference to be found, in points.")
@click.option(
    "--seed-sd-points", type=click.FloatRange(min=0, min_open=True), default=None, help="SD of a score over seeds."
)
@click.option("--seeds", type=click.IntRange(min=2), default=3, show_default=True, help="Runs of each recipe.")
@click.option("--usd-per-1000-items", type=click.FloatRange(min=0), default=None, help="What evaluating an arm costs.")
@click.option("--alpha", type=click.FloatRange(0, 0.5, min_open=True, max_open=True), default=0.05, show_default=True)
@json_option
def power_command(
    suites: tuple[str, ...],
    items: tuple[int, ...],
    discordance: float,
    target_points: float | None,
    seed_sd_points: float | None,
    seeds: int,
    usd_per_1000_items: float | None,
    alpha: float,
    as_json: bool,
) -> None:
    """The smallest difference each of the SUITES (NAME or NAME@VERSION; none: all) finds four times in five.

    With --items no store is needed. Checkpoints are compared on the same items; recipes need seeds (--seed-sd-points).
    """
    if suites and items:
        raise UserError("SUITES and --items exclude each other; leave one of them out")
    target = None if target_points is None else target_points / 100
    rows = _of_items(items, discordance, target, alpha) if items else _of_suites(suites, discordance, target, alpha)
    for row in rows:
        row["usd"] = _usd(row["n"], usd_per_1000_items)
        row["usd_needed"] = _usd(row["n_needed"], usd_per_1000_items)
    recipes = None if seed_sd_points is None else _recipes(seed_sd_points / 100, seeds, target, alpha)
    if as_json:
        print_json({"alpha": alpha, "power": 0.8, "target": target, "checkpoints": rows, "recipes": recipes})
        return
    _print(rows, target_points, usd_per_1000_items is not None)
    if recipes:
        needed = f"; {target_points:g} points take {count(recipes['seeds_needed'])}" if target_points else ""
        click.echo(
            f"recipes: {seeds} seeds of each show {_points(recipes['mde'])} points{needed}, however many the items"
        )


def _of_items(items: tuple[int, ...], psi: float, target: float | None, alpha: float) -> list[dict[str, Any]]:
    found = [binary_resolution(n, psi, target=target, alpha=alpha) for n in items]
    return [
        _line(
            PlannedBenchmark(
                suite="",
                tier="",
                benchmark="right or wrong",
                metric="",
                unit="fraction",
                n=r.n,
                basis="assumed",
                discordance=psi,
                mde=r.mde,
                n_needed=r.n_needed,
                resolves_target=None if target is None else r.mde <= target,
            )
        )
        for r in found
    ]


def _of_suites(names: tuple[str, ...], psi: float, target: float | None, alpha: float) -> list[dict[str, Any]]:
    store = opened()
    chosen = []
    for name in names:
        bare, _, version = name.partition("@")
        chosen.append(store.catalog.suite(bare, version or None))
    chosen = chosen or store.catalog.suites()
    if not chosen:
        raise UserError("no suite is registered: python -m eval_tasks suites register FILE, or give --items")
    return [_line(row) for row in plan_resolution(store, chosen, assumed=psi, target=target, alpha=alpha)]


def _line(row: PlannedBenchmark) -> dict[str, Any]:
    return asdict(row)


def _recipes(sd: float, seeds: int, target: float | None, alpha: float) -> dict[str, Any]:
    needed = None if target is None else seeds_needed(target, sd, alpha)
    return {"seed_sd": sd, "seeds": seeds, "mde": seeds_mde(seeds, sd, alpha), "seeds_needed": needed}


def _usd(n: int | None, per_1000: float | None) -> float | None:
    """Both arms."""
    return None if n is None or per_1000 is None else 2 * n * per_1000 / 1000


def _points(value: float) -> str:
    return f"{100 * value:.2f}"


def _print(rows: list[dict[str, Any]], target_points: float | None, priced: bool) -> None:
    columns = ["suite", "benchmark", "items", "disagree on", "finds (80 % power)"]
    columns += [f"items for {target_points:g} points"] if target_points else []
    columns += ["USD, both arms"] + (["USD for the target"] if target_points else []) if priced else []
    lines = []
    for row in rows:
        points = row["unit"] == "fraction"
        share = row["basis"] if row["discordance"] is None else f"{100 * row['discordance']:.1f} %, {row['basis']}"
        mde = ABSENT if row["mde"] is None else f"{_points(row['mde'])} points" if points else f"{row['mde']:.4g}"
        line = [f"{row['suite']} {row['tier']}".strip(), row["benchmark"], count(row["n"]), share, mde]
        line += [count(row["n_needed"])] if target_points else []
        priced_cells = [row["usd"]] + ([row["usd_needed"]] if target_points else [])
        line += [ABSENT if usd is None else f"{usd:,.2f}" for usd in priced_cells] if priced else []
        lines.append(line)
    print_table("what a comparison could find", columns, lines)


COMMANDS = (power_command,)
