"""`power`: what a comparison could find, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError
from eval_tasks.records import PlannedResolution
from eval_tasks.report.numbers import ABSENT, count, duration
from eval_tasks.report.resolution import tier_sentences
from eval_tasks.resolution import ASSUMED_DISCORDANCE, SEEDS, Asked, suite_resolution
from eval_tasks.stats.planning import binary_resolution, seeds_mde, seeds_needed


@click.command("power")
@click.argument("suites", nargs=-1)
@click.option("--items", type=click.IntRange(min=1), multiple=True, help="Numbers of items instead of suites.")
@click.option(
    "--discordance",
    type=float,
    default=ASSUMED_DISCORDANCE,
    show_default=True,
    help="Share of items two runs disagree on, where no past comparison shows it.",
)
@click.option("--target-points", type=float, default=None, help="The difference to be found, in points.")
@click.option(
    "--seed-sd-points",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    help="SD of a score over seeds. Of suites: where it is not given, a recorded seed study says it.",
)
@click.option("--seeds", type=click.IntRange(min=2), default=SEEDS, show_default=True, help="Runs of each recipe.")
@click.option("--usd-per-1000-items", type=click.FloatRange(min=0), default=None, help="What evaluating an arm costs.")
@click.option(
    "--usd-per-device-hour",
    type=click.FloatRange(min=0),
    default=None,
    help="The same, at the pace of past runs of each suite.",
)
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
    usd_per_device_hour: float | None,
    alpha: float,
    as_json: bool,
) -> None:
    """The smallest difference each of the SUITES (NAME or NAME@VERSION; none: all) finds four times in five.

    With --items no store is needed. Checkpoints are compared on the same items; recipes need seeds (--seed-sd-points).
    """
    if suites and items:
        raise UserError("SUITES and --items exclude each other; leave one of them out")
    if usd_per_1000_items is not None and usd_per_device_hour is not None:
        raise UserError("--usd-per-1000-items and --usd-per-device-hour are two prices of one thing; give one")
    if items and usd_per_device_hour is not None:
        raise UserError("--usd-per-device-hour needs the pace of a suite's past runs; --items has --usd-per-1000-items")
    target = None if target_points is None else target_points / 100
    asked = Asked(assumed=discordance, target=target, alpha=alpha, seeds=seeds)
    lines = [_of_items(n, asked) for n in items] if items else _of_suites(suites, asked)
    rows = [
        asdict(line)
        | {
            "usd": _usd(line.n, line.device_seconds, usd_per_1000_items, usd_per_device_hour),
            "usd_needed": _usd(line.n_needed, line.device_seconds_needed, usd_per_1000_items, usd_per_device_hour),
        }
        for line in lines
    ]
    recipes = None if seed_sd_points is None else _recipes(seed_sd_points / 100, seeds, target, alpha)
    if as_json:
        print_json({"alpha": alpha, "power": 0.8, "target": target, "checkpoints": rows, "recipes": recipes})
        return
    _print(rows, target_points, usd_per_1000_items is not None or usd_per_device_hour is not None)
    if target_points:
        for sentence in tier_sentences(lines, target_points / 100):
            click.echo(sentence)
    if recipes:
        needed = f"; {target_points:g} points take {count(recipes['seeds_needed'])}" if target_points else ""
        click.echo(
            f"recipes: {seeds} seeds of each show {_points(recipes['mde'])} points{needed}, however many the items"
        )


def _of_items(n: int, asked: Asked) -> PlannedResolution:
    found = binary_resolution(n, asked.assumed, target=asked.target, alpha=asked.alpha)
    return PlannedResolution(
        suite="",
        tier="",
        benchmark="right or wrong",
        metric="",
        unit="fraction",
        n=n,
        basis="assumed",
        discordance=asked.assumed,
        mde=found.mde,
        n_needed=found.n_needed,
        resolves_target=None if asked.target is None else found.mde <= asked.target,
    )


def _of_suites(names: tuple[str, ...], asked: Asked) -> list[PlannedResolution]:
    store = opened()
    chosen = []
    for name in names:
        bare, _, version = name.partition("@")
        chosen.append(store.catalog.suite(bare, version or None))
    chosen = chosen or store.catalog.suites()
    if not chosen:
        raise UserError("no suite is registered: python -m eval_tasks suites register FILE, or give --items")
    return suite_resolution(store, chosen, asked)


def _recipes(sd: float, seeds: int, target: float | None, alpha: float) -> dict[str, Any]:
    needed = None if target is None else seeds_needed(target, sd, alpha)
    return {"seed_sd": sd, "seeds": seeds, "mde": seeds_mde(seeds, sd, alpha), "seeds_needed": needed}


def _usd(n: int | None, seconds: float | None, per_1000: float | None, per_hour: float | None) -> float | None:
    """Both arms, by items or by the device's time; None where neither is known."""
    if n is not None and per_1000 is not None:
        return 2 * n * per_1000 / 1000
    return None if seconds is None or per_hour is None else 2 * seconds * per_hour / 3600


def _points(value: float) -> str:
    return f"{100 * value:.2f}"


def _amount(value: float | None, unit: str) -> str:
    return ABSENT if value is None else f"{_points(value)} points" if unit == "fraction" else f"{value:.4g}"


def _print(rows: list[dict[str, Any]], target_points: float | None, priced: bool) -> None:
    """A table of what is known: columns that would be empty are left out."""
    timed = any(row["device_seconds"] is not None for row in rows)
    studied = any(row["seed_sd"] is not None for row in rows)
    columns = ["suite", "benchmark", "items", "disagree on", "finds (80 % power)"]
    columns += [f"items for {target_points:g} points"] if target_points else []
    columns += ["recipes, by seeds"] if studied else []
    columns += ["time, both arms"] if timed else []
    columns += ["USD, both arms"] + (["USD for the target"] if target_points else []) if priced else []
    lines = []
    for row in rows:
        share = row["basis"] if row["discordance"] is None else f"{100 * row['discordance']:.1f} %, {row['basis']}"
        found = _amount(row["mde"], row["unit"])
        line = [f"{row['suite']} {row['tier']}".strip(), row["benchmark"], count(row["n"]), share, found]
        line += [count(row["n_needed"])] if target_points else []
        line += [_by_seeds(row)] if studied else []
        line += [duration(None if row["device_seconds"] is None else 2 * row["device_seconds"])] if timed else []
        priced_cells = [row["usd"]] + ([row["usd_needed"]] if target_points else [])
        line += [ABSENT if usd is None else f"{usd:,.2f}" for usd in priced_cells] if priced else []
        lines.append(line)
    print_table("what a comparison could find", columns, lines)


def _by_seeds(row: dict[str, Any]) -> str:
    if row["seeds_mde"] is None:
        return ABSENT
    needed = f"; target takes {count(row['seeds_needed'])}" if row["seeds_needed"] is not None else ""
    return f"{row['seeds']} find {_amount(row['seeds_mde'], row['unit'])}{needed} ({row['seed_study']})"


COMMANDS = (power_command,)
