"""A benchmark and its items -> what looks wrong with the data, each finding named. Changes nothing, refuses nothing.

What makes data unusable (a missing column, a doubled id, a gold answer that is no choice) is an error where it is read;
here is what a person should look at: whatever lets a model score without knowing, and damage that a parser cannot see.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from eval_tasks.records import BenchmarkVersion, Item
from eval_tasks.registry import Rendering, render_choices

P_BELOW = 1e-3
"""A tell is reported when chance alone would give it less often than this ..."""
POINTS_ABOVE = 0.03
"""... and when a guesser who knows it scores at least this much above chance: with 14,000 items, any quirk has a p."""
_CHANCE_WITHIN = 0.005
_NAMED_AT_MOST = 3

_DAMAGE = re.compile(
    "\ufffd|\ufeff|\u00e2\u20ac|[\u00c3\u00c2][\u0080-\u00bf]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]",
)
"""U+FFFD, a BOM within text, UTF-8 read as Latin-1 or Windows-1252, control characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at. `name` is that of the table in docs/benchmarks.md."""

    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A choice item: what a person sees of its choices, raw, and the index of the gold one."""

    item_id: str
    texts: tuple[str, ...]
    gold: int
    n_gold: int


def data_findings(benchmark: BenchmarkVersion, items: Sequence[Item]) -> list[Finding]:
    """Everything that is odd about the items, in a fixed order. Raises UserError when a template fails."""
    findings = [*_duplicates(benchmark, items), *_encoding(items)]
    if benchmark.kind == "choice":
        choices = [_choice(benchmark, item) for item in items]
        checks = (_blanks, _positions, _lengths, _labels, partial(_chance, benchmark))
        findings += [finding for check in checks for finding in check(choices)]
    return findings


def _choice(benchmark: BenchmarkVersion, item: Item) -> _Choice:
    """Fixed labels such as A to D say nothing of the texts: those of the first list of as many texts are taken."""
    rendering = Rendering(benchmark=benchmark.name, item_id=item.item_id, fields=item.fields)
    texts: Sequence[Any] = render_choices(benchmark.template.choices, rendering)
    column = benchmark.template.choices
    if isinstance(column, str):
        texts = item.fields.get(column, texts)
    elif all(len(text) <= 1 for text in texts):
        lists = (item.fields[name] for name in sorted(item.fields))
        texts = next((v for v in lists if isinstance(v, list) and len(v) == len(texts) and _all_text(v)), texts)
    golds = item.target if isinstance(item.target, list | tuple) else [item.target]
    return _Choice(item_id=item.item_id, texts=tuple(map(str, texts)), gold=golds[0], n_gold=len(golds))


def _all_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _duplicates(benchmark: BenchmarkVersion, items: Sequence[Item]) -> Iterator[Finding]:
    groups: dict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in items:
        rendering = Rendering(benchmark=benchmark.name, item_id=item.item_id, fields=item.fields)
        texts = render_choices(benchmark.template.choices, rendering) if benchmark.kind == "choice" else ()
        groups[(rendering.text("item", benchmark.template.item), *texts)].append(item)
    repeated = [group for group in groups.values() if len(group) > 1]
    if repeated:
        yield Finding(
            name="duplicate_texts",
            message=f"{sum(map(len, repeated)) - len(repeated)} items repeat the text of another and weigh double: "
            + _shown([" = ".join(repr(i.item_id) for i in group[:3]) for group in repeated]),
        )
    torn = [group for group in repeated if any(item.target != group[0].target for item in group)]
    if torn:
        yield Finding(
            name="contradictory_gold",
            message=f"{len(torn)} texts stand more than once with different gold answers: "
            + _shown([" / ".join(repr(i.item_id) for i in group[:3]) for group in torn]),
        )


def _encoding(items: Sequence[Item]) -> Iterator[Finding]:
    damaged = []
    for item in items:
        found = next((match for text in _texts(item.fields) if (match := _DAMAGE.search(text))), None)
        if found:
            around = found.string[max(0, found.start() - 12) : found.end() + 12]
            damaged.append(f"{item.item_id!r} {around!r}")
    if damaged:
        yield Finding(
            name="encoding",
            message=f"{len(damaged)} items hold damaged characters (text decoded wrongly, or control characters): "
            + _shown(damaged),
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _blanks(choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Whether the gold choice alone begins, or ends, with white space: stripped here, it still tells of the data."""
    tests: dict[str, Callable[[str], bool]] = {
        "begins": lambda text: text[:1].isspace(),
        "ends": lambda text: text[-1:].isspace(),
    }
    for verb, has_blank in tests.items():
        n = 0
        for choice in choices:
            blank = [has_blank(text) for text in choice.texts]
            n += blank.count(blank[choice.gold]) == 1 and len(blank) > 1 and any(blank)
        if n:
            yield Finding(
                name="gold_blanks",
                message=f"in {n} of {len(choices)} items the gold choice alone {verb} (or alone does not) with a "
                "blank; blanks are stripped from choices of a column, and the data deserves a look",
            )


def _positions(choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Pearson's chi-square of gold positions against uniform ones, summed over numbers of choices."""
    from scipy import special  # a tenth of a second that a pod, which plans nothing, need not spend

    by_size: dict[int, Counter[int]] = defaultdict(Counter)
    for choice in choices:
        by_size[len(choice.texts)][choice.gold] += 1
    statistic, freedom, best, chance = 0.0, 0, 0, 0.0
    for size, counts in by_size.items():
        expected = counts.total() / size
        statistic += sum((counts[position] - expected) ** 2 / expected for position in range(size))
        freedom += size - 1
        best += max(counts.values())
        chance += expected
    n = len(choices)
    if not freedom or not n:
        return
    p = float(special.chdtrc(freedom, statistic))
    if p < P_BELOW and (best - chance) / n >= POINTS_ABOVE:
        favourites = ", ".join(f"{c.most_common(1)[0][0] + 1} of {size}" for size, c in sorted(by_size.items()))
        yield Finding(
            name="gold_position",
            message=f"always answering with the most frequent position ({favourites}) scores {best / n:.1%}, and "
            f"chance is {chance / n:.1%}: chi-square {statistic:.1f} with {freedom} degrees of freedom, p = {p:.1g}",
        )


def _lengths(choices: Sequence[_Choice]) -> Iterator[Finding]:
    """How often the one longest (shortest) choice is the gold one, as a sum of independent draws: z with its p."""
    from scipy import special

    for word, pick in (("longest", max), ("shortest", min)):
        hits, expected, variance, n = 0, 0.0, 0.0, 0
        for choice in choices:
            lengths = [len(text) for text in choice.texts]
            extreme = pick(lengths)
            if len(lengths) > 1 and lengths.count(extreme) == 1:
                share = 1 / len(lengths)
                n, hits = n + 1, hits + (lengths[choice.gold] == extreme)
                expected, variance = expected + share, variance + share * (1 - share)
        if not n:
            continue
        z = (hits - expected) / math.sqrt(variance)
        p = 2 * float(special.ndtr(-abs(z)))
        if p < P_BELOW and (hits - expected) / n >= POINTS_ABOVE:
            yield Finding(
                name="gold_length",
                message=f"where one choice is the {word}, it is the gold one in {hits / n:.1%} of {n} items, and "
                f"chance is {expected / n:.1%}: z = {z:.1f}, p = {p:.1g}",
            )


def _labels(choices: Sequence[_Choice]) -> Iterator[Finding]:
    alike = [c.item_id for c in choices if len({text.strip() for text in c.texts}) < len(c.texts)]
    if alike:
        yield Finding(
            name="label_set",
            message=f"{len(alike)} items have two choices of the same text: {_shown([repr(i) for i in alike])}",
        )
    empty = [c.item_id for c in choices if not all(text.strip() for text in c.texts)]
    if empty:
        yield Finding(
            name="label_set",
            message=f"{len(empty)} items have an empty choice and will be invalid: {_shown([repr(i) for i in empty])}",
        )
    sizes = Counter(len(c.texts) for c in choices)
    if len(sizes) > 1:
        counts = ", ".join(f"{n} items with {size}" for size, n in sorted(sizes.items()))
        yield Finding(name="label_set", message=f"the number of choices differs: {counts}")
    (size, _), *_ = sizes.most_common(1)
    if never := sorted(set(range(size)) - {c.gold for c in choices}):
        shown = ", ".join(str(position + 1) for position in never)
        yield Finding(
            name="label_set", message=f"choice {shown} of {size} is never the gold one, in {len(choices)} items"
        )


def _chance(benchmark: BenchmarkVersion, choices: Sequence[_Choice]) -> Iterator[Finding]:
    chance = math.fsum(choice.n_gold / len(choice.texts) for choice in choices) / len(choices)
    declared = benchmark.chance_level
    if declared is not None and abs(declared - chance) > _CHANCE_WITHIN:
        yield Finding(
            name="chance_level",
            message=f"chance_level is {declared:g}, and guessing among the choices scores {chance:.3g}",
        )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return "; ".join(names[:_NAMED_AT_MOST]) + more
