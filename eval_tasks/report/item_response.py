"""Item-response calibrations and item reports in, sentences and tables out. Knows no markup."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.records import CalibratedItem, Calibration, ItemReport
from eval_tasks.report.abilities import signed, signed_interval
from eval_tasks.report.numbers import ABSENT, amount, count, interval, probability
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import excerpt, one_line

_LONGEST_NAME = 80
_LONGEST_TEXT = 1_200
_TEXTS_BUDGET = 60_000

FLAG_WORDS = {
    "negative_discrimination": "likely mislabelled: abler runs get it wrong",
    "below_chance": "below chance: mislabelled, or a trap",
    "too_hard": "too hard",
    "too_easy": "too easy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """The texts of one item: a headline, then named parts."""

    headline: str
    parts: tuple[tuple[str, str], ...]


def calibration_sentences(calibration: Calibration) -> tuple[str, ...]:
    """What was calibrated on what, how well, what it found, and what must be said of it."""
    k, groups = calibration, len(calibration.groups)
    n = k.n_flagged
    return (
        f"{k.reference}: two-parameter logistic model of {k.metric} ({k.grader}) on {count(len(k.runs))} checkpoints "
        f"of {count(groups)} training runs; {count(k.n_calibrated)} of {count(k.n_items)} items have weights. "
        f"Reliability {k.reliability:.2f}.",
        f"{count(n['negative_discrimination'])} items are answered wrong more often by abler runs (likely mislabelled, "
        f"or of another skill; at most 5 % of them by chance), {count(n['below_chance'])} right less often than "
        f"chance, {count(n['too_hard'])} too hard and {count(n['too_easy'])} too easy to tell these runs apart.",
        *(f"{note[0].upper()}{note[1:]}." for note in k.notes),
    )


def item_table(report: ItemReport) -> Table:
    """The items to look at, in order."""
    more = f": the first {count(len(report.items))} of {count(report.n_listed)}"
    numbers = ("Right", "95 % interval", "Training runs", "Discrimination", "Link with ability", "q")
    return Table(
        name="items",
        caption="Items to look at" + (more if report.n_listed > len(report.items) else ""),
        columns=(
            Column(heading="Item"),
            Column(heading="What is odd"),
            *(Column(heading=heading, style="number") for heading in numbers),
            Column(heading="Common wrong answer"),
        ),
        rows=tuple(item_row(item) for item in report.items),
        marked=frozenset(k for k, item in enumerate(report.items) if "negative_discrimination" in item.flags),
    )


def item_row(item: CalibratedItem) -> tuple[str, ...]:
    """One item's numbers as text, as `item_table` heads them."""
    a = item.discrimination
    p = min((p for p in (item.q, item.chance_q) if p is not None), default=None)
    link = ABSENT if item.link is None else f"{signed(item.link)} {signed_interval(item.link_ci95)}"
    return (
        one_line(item.item_id, _LONGEST_NAME),
        "; ".join(FLAG_WORDS[flag] for flag in item.flags),
        amount(item.share),
        interval(item.share_ci95),
        count(item.n_groups) if item.n_groups == item.n_runs else f"{count(item.n_groups)} ({count(item.n_runs)} runs)",
        ABSENT if a is None else f"{signed(a)} ± {item.discrimination_se:.2f}",
        link,
        probability(p),
        _wrong(item),
    )


def shown_texts(report: ItemReport) -> tuple[ShownText, ...]:
    """Question and gold answer of each item; all texts share one budget, so that the page stays small."""
    limit = min(_LONGEST_TEXT, max(120, _TEXTS_BUDGET // (2 * len(report.items) or 1)))
    shown = []
    for item in report.items:
        question, gold = report.texts.get(item.item_id, ("", ""))
        parts = (("Item", question), ("Gold", gold), ("Common wrong answer", _wrong(item)))
        headline = f"{item.item_id} ({'; '.join(FLAG_WORDS[flag] for flag in item.flags)})"
        shown.append(
            ShownText(
                headline=one_line(headline, 200),
                parts=tuple((name, excerpt(text, limit)) for name, text in parts if text),
            )
        )
    return tuple(shown)


def _wrong(item: CalibratedItem) -> str:
    if item.common_wrong is None:
        return ""
    return f"{one_line(item.common_wrong, _LONGEST_NAME)} ({count(item.n_common_wrong)} of {count(item.n_runs)} runs)"
