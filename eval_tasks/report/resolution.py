"""What comparisons could have found, in words: of a run, of a comparison, and of tiers before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.records import Measurement, PairedTest, PlannedResolution
from eval_tasks.report.numbers import ABSENT, amount, count, duration, unit_name
from eval_tasks.report.sentences import resolvable, shown_tests
from eval_tasks.report.text import one_line
from eval_tasks.report.view import ReportView

_MOST_NAMED = 4
_MOST_ROWS = 20


def could_have_seen(view: ReportView) -> str:
    """One sentence: the smallest true differences that these data would have found; '' where nothing is known.

    The comparison's own where there is one, else by how often runs disagreed in past comparisons, else unpaired.
    """
    tests = [t for t in shown_tests(view.comparison) if t.mde is not None] if view.comparison else []
    if tests:
        return _sentence("This comparison could have seen", [_of_test(t) for t in _primary_first(tests)], "")
    past = [line for line in view.resolution if line.mde is not None]
    if past:
        named = [f"{_size(line.mde, line.unit)} on {line.benchmark.partition('@')[0]}" for line in past]
        why = "; a paired comparison, by how often runs disagreed in past ones"
        return _sentence("This run could have seen", named, why)
    alone = [(m, resolvable(m)) for m in view.measurements if m.primary and not m.quarantined]
    named = [f"{_size(value, m.unit)} on {m.benchmark}" for m, value in alone if value is not None]
    return _sentence(
        "This run could have seen", named, "; unpaired, since no past comparison shows how often runs disagree"
    )


def paired_mde(m: Measurement, view: ReportView) -> tuple[float | None, str]:
    """The smallest true difference of a paired comparison on a measurement's metric, and what it is read from."""
    for test in view.comparison.tests if view.comparison else ():
        if (test.benchmark, test.metric) == (m.benchmark, m.metric) and test.mde is not None:
            return test.mde, "this comparison"
    for line in view.resolution:
        if (line.benchmark, line.metric) == (f"{m.benchmark}@{m.version}", m.metric):
            return line.mde, line.basis
    return None, ""


def markdown(lines: Sequence[PlannedResolution]) -> str:
    """A suite's lines as a Markdown table, for who approves an evaluation; beyond 20 benchmarks the first ones."""
    rows = [
        "| benchmark | items | finds (80 % power) | by | items for 1 point | seeds | time of an arm |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in lines[:_MOST_ROWS]:
        by = line.basis if line.discordance is None else f"{100 * line.discordance:.1f} % differ, {line.basis}"
        seeds = ABSENT
        if line.seeds_mde is not None:
            seeds = f"{line.seeds} a recipe find {_size(line.seeds_mde, line.unit)}"
        found = ABSENT if line.mde is None else _size(line.mde, line.unit)
        cells = (line.benchmark, count(line.n), found, by, count(line.n_needed), seeds, duration(line.device_seconds))
        rows.append("| " + " | ".join(one_line(cell, 120).replace("|", "\\|") for cell in cells) + " |")
    if len(lines) > _MOST_ROWS:
        rows.append(f"\nAnd {count(len(lines) - _MOST_ROWS)} more: python -m eval_tasks power {lines[0].suite}")
    return "\n".join(rows)


def tier_sentences(lines: Sequence[PlannedResolution], target: float) -> list[str]:
    """For each suite, which benchmarks resolve a target difference (a fraction) and which do not."""
    said = []
    for suite in dict.fromkeys((line.suite, line.tier) for line in lines):
        own = [line for line in lines if (line.suite, line.tier) == suite and line.resolves_target is not None]
        can = [line.benchmark for line in own if line.resolves_target]
        cannot = [line.benchmark for line in own if not line.resolves_target]
        name = " ".join(part for part in suite if part) or "these items"
        parts = [f"resolve {_size(target, 'fraction')}: {', '.join(can)}"] if can else []
        parts += [f"cannot: {', '.join(cannot)}"] if cannot else []
        if parts:
            said.append(f"{name}: " + "; ".join(parts))
    return said


def _primary_first(tests: Sequence[PairedTest]) -> list[PairedTest]:
    return sorted(tests, key=lambda test: not test.primary)


def _of_test(test: PairedTest) -> str:
    return f"{_size(test.mde, test.unit)} on {test.benchmark}"


def _size(value: float | None, unit: str) -> str:
    return f"{amount(value, unit)} {unit_name(unit)}"


def _sentence(start: str, named: Sequence[str], why: str) -> str:
    if not named:
        return ""
    more = f" and as shown below on {count(len(named) - _MOST_NAMED)} more" if len(named) > _MOST_NAMED else ""
    return f"{start} a true difference of {', '.join(named[:_MOST_NAMED])}{more} (found four times in five{why})."
