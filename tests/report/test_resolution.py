import dataclasses

from eval_tasks.records import PlannedResolution
from eval_tasks.report import ReportView, report_html, report_json, terminal_text
from eval_tasks.report.resolution import could_have_seen, markdown, tier_sentences


def line(benchmark: str, mde: float | None, **changes: object) -> PlannedResolution:
    fields: dict[str, object] = {
        "suite": "s@1",
        "tier": "selection",
        "benchmark": f"{benchmark}@1",
        "metric": "acc",
        "unit": "fraction",
        "n": 2000,
        "basis": "observed in 3 past comparisons, 6,000 pairs",
        "discordance": 0.05,
        "mde": mde,
        "n_needed": None,
        "resolves_target": None,
    }
    return PlannedResolution(**{**fields, **changes})  # type: ignore[arg-type]


def test_every_rendering_says_what_could_have_been_seen(view: ReportView) -> None:
    said = "This comparison could have seen a true difference of 3.1 points on demo-choice, 3.1 points on mmlu-pro"
    assert said in report_html(view)
    assert said in report_json(view)["could_have_seen"]
    assert "could have seen a true difference of 3.1 points" in terminal_text(view, 200)


def test_a_run_alone_is_read_by_past_comparisons(view: ReportView) -> None:
    run = dataclasses.replace(view, comparison=None, resolution=(line("mmlu-pro", 0.014),))
    assert could_have_seen(run) == (
        "This run could have seen a true difference of 1.4 points on mmlu-pro (found four times in five; a paired "
        "comparison, by how often runs disagreed in past ones)."
    )
    assert "observed in 3 past comparisons, 6,000 pairs" in report_html(run)
    (found,) = [r for r in report_json(run)["resolution"] if r["paired"] is not None]
    assert (found["paired"], found["paired_by"]) == (0.014, "observed in 3 past comparisons, 6,000 pairs")


def test_a_run_without_any_past_is_read_unpaired(view: ReportView) -> None:
    said = could_have_seen(dataclasses.replace(view, comparison=None))
    assert said.startswith("This run could have seen a true difference of 6.9 points on demo-choice, 6.9 points on")
    assert "unpaired, since no past comparison shows how often runs disagree" in said
    assert "ifeval" not in said  # quarantined
    assert could_have_seen(ReportView(run=view.run)) == ""


def test_four_are_named_and_the_rest_counted(view: ReportView) -> None:
    lines = tuple(line(f"b{k}", 0.01) for k in range(9))
    said = could_have_seen(dataclasses.replace(view, comparison=None, resolution=lines))
    assert "1.0 points on b3 and as shown below on 5 more (found" in said


def test_who_approves_reads_a_table() -> None:
    lines = [
        line("a|b", 0.014, device_seconds=7_200.0, seeds=3, seeds_mde=0.0177, n_needed=3923),
        line("text", None, unit="bits per byte", discordance=None),
    ]
    said = markdown(lines * 15)
    assert (
        "| a\\|b@1 | 2,000 | 1.4 points | 5.0 % differ, observed in 3 past comparisons, 6,000 pairs | 3,923 |" in said
    )
    assert "| 3 a recipe find 1.8 points | 2.0 h |" in said
    assert said.count("\n") == 22 + 1 and said.endswith("And 10 more: python -m eval_tasks power s@1")


def test_what_a_suite_can_and_cannot_resolve() -> None:
    lines = [line("a", 0.008, resolves_target=True), line("b", 0.02, resolves_target=False), line("c", 0.02)]
    assert tier_sentences(lines, 0.01) == ["s@1 selection: resolve 1.0 points: a@1; cannot: b@1"]
