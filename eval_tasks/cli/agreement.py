"""`graders agreement`, `verdicts`, `qualify`, `use`: sets of labelled outputs, and whether a grader may be used."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from eval_tasks.cli.output import json_option, opened, print_json, print_table
from eval_tasks.errors import UserError
from eval_tasks.graders.agreement_sets import SAMPLE, items_of, items_of_file, items_of_runs, make_set
from eval_tasks.graders.qualification import qualify, use
from eval_tasks.graders.raters import (
    HumanAgreement,
    graders_of,
    human_agreement,
    people_say,
    read_verdicts,
    verdicts_of,
    with_people,
)
from eval_tasks.records import to_json
from eval_tasks.records.agreement import Agreement, AgreementItem, AgreementSet, Qualification
from eval_tasks.report.numbers import ABSENT, change_interval, count, interval, probability, share

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COLUMNS = ("who", "category", "n", "agree", "agreement", "95 % CI", "kappa", "95 % CI of kappa")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@click.command("agreement")
@click.argument("set_reference", metavar="SET")
@click.option("--from", "file", type=_FILE, help="First make the set: CSV or JSONL of item_id, output, rater, label.")
@click.option("--from-run", "runs", multiple=True, help="First make the set, of a run's human labels; may be repeated.")
@click.option("--shipped", is_flag=True, help="First make the set, of the small sample that ships.")
@click.option("--benchmark", default="", help="The benchmark that the set stands for; with --from-run required.")
@click.option("--labels", default="", help="With --from-run: whose labels, such as human/panel@1.")
@click.option("--description", default="")
@click.option("--human-ceiling", is_flag=True, help="Refuse a set with one rater: people's own agreement is wanted.")
@json_option
def agreement_command(
    set_reference: str,
    file: Path | None,
    runs: tuple[str, ...],
    shipped: bool,
    benchmark: str,
    labels: str,
    description: str,
    human_ceiling: bool,
    as_json: bool,
) -> None:
    """Show how far people, and graders with people, agree on an agreement SET (NAME or NAME@VERSION), by category.

    With --from, --from-run or --shipped the set is made first; the same again changes nothing.
    """
    store = opened()
    if (file is not None) + bool(runs) + shipped > 1:
        raise UserError("--from, --from-run and --shipped each say what the set is made of; give one")
    if file or runs or shipped:
        run_ids = [store.catalog.run(run).run_id for run in runs]
        if runs and not (benchmark and labels):
            raise UserError("--from-run needs --benchmark and --labels: whose labels of which answers")
        made = items_of_runs(store, run_ids, benchmark, labels) if runs else items_of_file(file or SAMPLE)
        name, _, version = set_reference.partition("@")
        found = make_set(
            store, made, name=name, version=version or "1", benchmark=benchmark, description=description, now=_now()
        )
    else:
        found = store.catalog.agreement_set(set_reference)
    items = items_of(store, found)
    groups = _groups(found, items)
    human = {group: human_agreement([items[row] for row in rows]) for group, rows in groups.items()}
    if human_ceiling and (note := human["all"].note):
        raise UserError(
            f"agreement set {found.reference!r}: how far people agree is {note}; have a second person label its outputs"
        )
    people_said = people_say(items)
    graders = {}
    for name in graders_of(store, found):
        said_by = verdicts_of(store, found, items, name)
        graders[name] = {group: with_people(people_said[rows], said_by[rows]) for group, rows in groups.items()}
    if as_json:
        said = {name: {group: asdict(value) for group, value in by.items()} for name, by in graders.items()}
        people = {group: asdict(value) for group, value in human.items()}
        print_json({"set": to_json(found), "set_digest": found.set_digest, "human": people, "graders": said})
        return
    _show(found, items, human, graders)


def _groups(found: AgreementSet, items: list[AgreementItem]) -> dict[str, list[int]]:
    """Rows of ``all``, and of each category where there is more than one."""
    groups = {"all": list(range(len(items)))}
    if len(found.categories) > 1:
        groups |= {name: [row for row, i in enumerate(items) if i.category == name] for name in found.categories}
    return groups


def _show(
    found: AgreementSet,
    items: list[AgreementItem],
    human: dict[str, HumanAgreement],
    graders: dict[str, dict[str, Agreement]],
) -> None:
    n_tied = int(np.count_nonzero(np.isnan(people_say(items))))
    names = ", ".join(f"{name or '(none)'} {n}" for name, n in found.categories.items())
    click.echo(
        f"{found.reference}, digest {found.set_digest[:12]}: {found.n_items} outputs ({names}) labelled by "
        f"{', '.join(found.raters)}; people are evenly divided over {n_tied}"
    )
    rows, notes = [], set()
    for group, people in human.items():
        rows += [_row(f"{a}, {b}", group, value) for a, b, value in people.pairs]
        notes |= {value.kappa_note for _, _, value in people.pairs}
        if (every := people.all_raters) is not None:
            kappa = (_number(every.kappa), _span(every.ci95))
            rows.append((f"all {every.n_raters} raters", group or "(none)", every.n, "", "", "", *kappa))
            notes.add(every.note)
    print_table("people with each other" + (f": {human['all'].note}" if human["all"].note else ""), _COLUMNS, rows)
    lines = [_row(name, group, value) for name, by in graders.items() for group, value in by.items()]
    notes |= {value.kappa_note for by in graders.values() for value in by.values()}
    print_table("graders with people", _COLUMNS, lines)
    for note in sorted(notes - {""}):
        click.echo(note)


def _row(who: str, group: str, value: Agreement) -> tuple[Any, ...]:
    agreed = share(value.n_agree, value.n) if value.n else ABSENT
    kappa = (_number(value.kappa), _span(value.kappa_ci95))
    return who, group or "(none)", value.n, value.n_agree, agreed, interval(value.ci95), *kappa


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"


def _span(ends: tuple[float, float] | None) -> str:
    return ABSENT if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


@click.command("verdicts")
@click.argument("set_reference", metavar="SET")
@click.argument("file", type=_FILE)
@click.option("--grader", required=True, help="NAME@VERSION; other verdicts are another version.")
def verdicts_command(set_reference: str, file: Path, grader: str) -> None:
    """Take a grader's verdicts on an agreement SET's outputs from a FILE (CSV or JSONL: item_id, label)."""
    store = opened()
    found = store.catalog.agreement_set(set_reference)
    items = items_of(store, found)
    verdicts = read_verdicts(found, file, items=items, grader=grader, now=_now())
    store.catalog.save_verdicts(verdicts)
    click.echo(f"{grader}: {len(verdicts.verdicts)} verdicts on the {found.n_items} outputs of {found.reference}")


@click.command("qualify")
@click.argument("grader", metavar="NEW")
@click.option("--against", required=True, help="The grader in use.")
@click.option("--set", "set_reference", required=True, help="The agreement set, NAME or NAME@VERSION.")
@click.option("--margin", type=float, required=True, help="The loss of agreement that is too much, a share: 0.02.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="One-sided, over all categories.")
@json_option
def qualify_command(grader: str, against: str, set_reference: str, margin: float, alpha: float, as_json: bool) -> int:
    """May the grader NEW take the place of the one in use? Only if it is not inferior in any category.

    Exit codes: 0 adopted, 1 not adopted, 2 bad input.
    """
    store = opened()
    found = store.catalog.agreement_set(set_reference)
    made = qualify(store, found, grader, against=against, margin=margin, alpha=alpha, now=_now())
    if as_json:
        print_json(to_json(made) | {"qualification_id": made.qualification_id})
    else:
        _show_qualification(made)
    return 0 if made.adopted else 1


def _show_qualification(made: Qualification) -> None:
    rows = []
    for result in made.categories:
        spread = change_interval(result.ci)
        new, current = (
            ABSENT if v is None else f"{100 * v:.1f}" for v in (result.agreement_new, result.agreement_current)
        )
        name = result.category or "(none)"
        rows.append(
            (name, result.n, new, current, spread, probability(result.p_holm), result.outcome, count(result.n_needed))
        )
    columns = ("category", "labels", "new %", "in use %", f"difference, {100 * (1 - 2 * made.alpha):g} % CI")
    title = f"{made.grader} against {made.against} on {made.agreement_set}, margin {100 * made.margin:g} points"
    print_table(title, (*columns, "p (Holm)", "outcome", "labels needed"), rows)
    tied = f"{made.n_tied} outputs that people are evenly divided over count nowhere"
    silent = f"no verdict (counted as disagreement): new {made.n_unjudged_new}, in use {made.n_unjudged_current}"
    click.echo(f"{tied}; {silent}")
    click.echo(f"{'ADOPTED' if made.adopted else 'NOT ADOPTED'}: {made.reason}")
    click.echo(f"qualification {made.qualification_id}, {made.qualified_at}")


@click.command("use")
@click.argument("grader")
@click.option("--benchmark", required=True)
@click.option("--reason", required=True, help="Why this grader stands without a qualification.")
def use_command(grader: str, benchmark: str, reason: str) -> None:
    """Put a GRADER in use for a benchmark by your word: the first one, which has nothing to be held against."""
    made = use(opened(), grader, benchmark, reason=reason, now=_now())
    click.echo(f"{made.grader} is in use for {made.benchmark} from {made.since}: {made.reason}")


COMMANDS = (agreement_command, verdicts_command, qualify_command, use_command)
