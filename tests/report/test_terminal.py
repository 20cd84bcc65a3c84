import dataclasses

import pytest

from eval_tasks.report import ReportView, terminal_text


@pytest.mark.parametrize("width", [80, 120])
def test_everything_that_matters_is_readable_at_this_width(view: ReportView, width: int) -> None:
    text = terminal_text(view, width)
    assert max(map(len, text.splitlines())) <= width
    for said in (
        "[78.6, 85.4]",
        "480 of 500",
        "never checked",
        "QUARANTINED",
        "20 missing",
        "[+34.4, +46.4]",
        "40/12",
        "<0.0001",
        "INDISTINGUISHABLE",
        "(UNDERPOWERED)",
        "quarantined",
        "-0.4211",
        "demo-choice",
        "bits_per_byte",
        "Data contract: 1 of 2 expectations met, by great_expectations 1.24.1",
    ):
        assert said in text, said


def test_the_verdict_stands_last(view: ReportView) -> None:
    last = terminal_text(view, 200).splitlines()[-1]
    assert last.startswith("A better: A (demo step 900) is better than B (demo step 50)")


def test_there_is_no_colour_and_no_escape_in_it(view: ReportView) -> None:
    hostile = dataclasses.replace(view, notes=("\x1b]0;title\x07[bold red]not markup[/]",))
    text = terminal_text(hostile)
    assert "\x1b" not in text
    assert "[bold red]not markup[/]" in text


def test_names_are_kept_whole_at_80_columns(view: ReportView) -> None:
    lines = terminal_text(view, 80).splitlines()
    for name in ("demo-choice 1", "mmlu-pro 1", "  bits_per_byte"):
        assert any(line.startswith(name) for line in lines), name


def test_a_run_without_scores_still_renders(view: ReportView) -> None:
    text = terminal_text(ReportView(run=view.run))
    assert text.startswith("selection evaluation of demo step 900\n")


def test_wrapped_lines_stay_as_far_in_as_their_first(view: ReportView) -> None:
    lines = terminal_text(view, 80).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("    ifeval-0: output"))
    assert lines[start + 1].startswith("    ")
    assert lines[start + 2].startswith("    ifeval-1")
