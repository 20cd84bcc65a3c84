import dataclasses
import re
from html.parser import HTMLParser

import pytest

from eval_tasks.records import SampleOutput
from eval_tasks.report import ReportView, report_html

_VOID = {"meta", "link", "br", "img", "hr", "input"}
_HOSTILE = "</pre><script>alert(1)</script><img src=//evil.test/x onerror=alert(2)>\ud800\x1b[31m{{ 7*7 }}\u202e"


class _Page(HTMLParser):
    """Checks nesting while it collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def _with_sample(view: ReportView, text: str, copies: int = 1, excursions: int = 1) -> ReportView:
    assert view.guard is not None
    sample = SampleOutput(item_id=text, status=text, prompt_tail=text, output=text, extracted=text, gold=text)
    excursion = dataclasses.replace(view.guard.excursions[0], observed=text, samples=(sample,) * copies)
    return dataclasses.replace(view, guard=dataclasses.replace(view.guard, excursions=(excursion,) * excursions))


def test_the_page_is_well_formed_and_has_everything(view: ReportView) -> None:
    page = _Page(report_html(view))
    assert page.open == []
    for said in (
        "A better: A (demo step 900) is better than B (demo step 50)",
        "82.0",
        "[78.6, 85.4]",
        "never checked",
        "30 (6.1 %)",
        "QUARANTINED: strict below plausible 0.05 to 0.95",
        "If nothing had changed, 0.18 of them",
        "the the the the",
        "x86_64 AVX2",
        "f" * 64,
        "There is no overall score",
        "2, 2.0 min of compute",
        "training seed",
        "7,800",
    ):
        assert said in page.text, said


def test_the_data_contract_is_in_the_page_clause_by_clause(view: ReportView) -> None:
    page = report_html(view)
    for said in (
        "Data contract, in the order of checking, by great_expectations 1.24.1",
        "ifeval: rows",
        "2 of 3 share",
    ):
        assert said in page, said


def test_the_same_view_gives_the_same_bytes(view: ReportView) -> None:
    assert report_html(view) == report_html(dataclasses.replace(view))


def test_nothing_is_fetched_and_nothing_runs(view: ReportView) -> None:
    page = _Page(report_html(view))
    assert not page.named("script") + page.named("link") + page.named("img") + page.named("iframe")
    policy = next(m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "src"))


def test_tables_have_captions_and_headings_and_figures_have_words(view: ReportView) -> None:
    page = _Page(report_html(view))
    assert len(page.named("caption")) == len(page.named("table")) >= 7
    assert all(cell.get("scope") in ("col", "row") for cell in page.named("th"))
    drawings = [div for div in page.named("div") if div.get("role") == "img"]
    assert len(drawings) == len(page.named("figure")) == 4
    assert "mmlu-pro acc 82.0 [78.6, 85.4]" in str(drawings[0]["aria-label"])
    assert "demo-choice acc: +40.4 points, from +34.4 to +46.4" in str(drawings[2]["aria-label"])
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {str(a["href"])[1:] for a in page.named("a")}
    assert links <= set(ids)


def test_the_margin_within_which_arms_are_equivalent_is_a_band(view: ReportView) -> None:
    assert "Shaded: 1.0 or 2.0 points, the margin" in report_html(view)
    assert view.comparison is not None
    without = dataclasses.replace(view, comparison=dataclasses.replace(view.comparison, rule=None))
    assert "Shaded: 1.0 points, the margin" in report_html(without)


def test_the_verdict_stands_in_bold_and_its_reason_beside_it(view: ReportView) -> None:
    html = report_html(view)
    assert "<strong>A better: A (demo step 900) is better than B (demo step 50)</strong> — demo-choice acc is" in html
    assert view.comparison is not None
    silent = dataclasses.replace(view.comparison, reason="")
    assert "(demo step 50)</strong>.</p>" in report_html(dataclasses.replace(view, comparison=silent))


def test_hostile_strings_are_shown_and_do_nothing(view: ReportView) -> None:
    assert view.run is not None
    hostile = dataclasses.replace(
        _with_sample(view, _HOSTILE),
        run=dataclasses.replace(view.run, training_run=_HOSTILE, environment=_HOSTILE, reason=_HOSTILE),
        measurements=tuple(dataclasses.replace(m, benchmark=_HOSTILE) for m in view.measurements),
        notes=(_HOSTILE,),
    )
    html = report_html(hostile)
    html.encode("utf-8")
    page = _Page(html)
    assert page.open == []
    assert not page.named("script") + page.named("img")
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    assert not re.search("[\ud800\x1b\u202e]", html)


@pytest.mark.parametrize(("copies", "excursions"), [(5, 1), (5, 60)])
def test_very_long_outputs_stay_under_the_page_limit(view: ReportView, copies: int, excursions: int) -> None:
    html = report_html(_with_sample(view, "<&x" * 200_000, copies, excursions))
    assert len(html.encode()) < 500_000
    assert "characters left out" in html


def test_a_suite_of_50_benchmarks_stays_under_500_kb(view: ReportView) -> None:
    assert view.comparison is not None
    many = dataclasses.replace(
        view,
        measurements=tuple(dataclasses.replace(view.measurements[1], benchmark=f"bench-{i}") for i in range(50)),
        comparison=dataclasses.replace(
            view.comparison,
            tests=tuple(dataclasses.replace(view.comparison.tests[0], benchmark=f"bench-{i}") for i in range(50)),
        ),
    )
    assert len(report_html(many).encode()) < 500_000


def test_a_comparison_alone_and_a_run_alone_render(view: ReportView) -> None:
    alone = _Page(report_html(ReportView(comparison=view.comparison)))
    assert "Comparison of demo step 900 with demo step 50".lower() in alone.text.lower()
    links = {str(a["href"])[1:] for a in alone.named("a")}
    assert links <= {attributes["id"] for _, attributes in alone.tags if "id" in attributes}
    assert "not known yet" in report_html(
        ReportView(run=dataclasses.replace(view.run, env_fingerprint=None, config_digest=None))  # type: ignore[type-var]
    )


def test_a_composite_stands_before_its_components(view: ReportView) -> None:
    assert view.comparison is not None
    test = dataclasses.replace(view.comparison.tests[0], benchmark="0.5 mmlu-pro + 0.5 gsm8k", delta=-0.002)
    html = report_html(dataclasses.replace(view, comparison=dataclasses.replace(view.comparison, composite=test)))
    rows = re.findall(r'<th scope="row" role="rowheader">([^<]+)', html[html.index('id="tests-caption"') :])
    assert rows[:2] == ["0.5 mmlu-pro + 0.5 gsm8k · acc", "demo-choice · acc"]
