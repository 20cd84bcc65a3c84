import re
import xml.etree.ElementTree as ET

import pytest

from eval_tasks.report.plots import Mark, PlotRow, interval_figure

ROWS = (
    PlotRow(
        label="mmlu-pro · acc",
        value="82.0 [78.4, 85.1]",
        marks=(
            Mark(point=82.0, ends=(78.4, 85.1), shape="filled"),
            Mark(point=80.5, ends=(77.0, 84.0), shape="hollow", offset=0.22),
        ),
        reference=25.0,
        margin=2.0,
    ),
    PlotRow(label="ifeval · strict", value="0.2", marks=(Mark(point=0.2, ends=None, shape="cross"),)),
)


def test_the_same_rows_give_the_same_bytes() -> None:
    assert interval_figure(ROWS, name="f", axis_label="points") == interval_figure(ROWS, name="f", axis_label="points")


def test_two_figures_on_a_page_share_no_id() -> None:
    ids = [re.findall(r'id="([^"]+)"', interval_figure(ROWS, name=name, axis_label="points")) for name in ("f1", "f2")]
    assert ids[0]
    assert len(set(ids[0])) == len(ids[0])
    assert not set(ids[0]) & set(ids[1])


def test_references_inside_a_figure_lead_somewhere() -> None:
    svg = interval_figure(ROWS, name="f", axis_label="points", zero=True)
    ids = set(re.findall(r'id="([^"]+)"', svg))
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert references
    assert references <= ids


def test_colours_come_from_the_page() -> None:
    svg = interval_figure(ROWS, name="f", axis_label="points", zero=True)
    assert "currentColor" in svg
    assert "var(--mark)" in svg
    assert "var(--band)" in svg
    assert not re.search(r"#0[1-5]0[1-5]0[1-5]\b", svg)


@pytest.mark.parametrize("label", ["$x^$", "<script>alert(1)</script>", "日本語 & emoji 🙂", "", "a" * 300])
def test_any_label_is_drawn_as_it_is(label: str) -> None:
    row = PlotRow(label=label, value="", marks=(Mark(point=1.0, ends=None, shape="filled"),))
    root = ET.fromstring(interval_figure([row], name="f", axis_label="points"))
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert label in ["", *texts]


def test_text_stays_text_and_no_date_or_host_is_written() -> None:
    svg = interval_figure(ROWS, name="f", axis_label="points")
    assert ">82.0 [78.4, 85.1]</text>" in svg
    assert "<metadata" not in svg
    assert "matplotlib" not in svg.lower()
    assert set(re.findall(r"https?://[^\"]+", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_one_value_and_no_rows_have_a_scale_of_their_own() -> None:
    lone = PlotRow(label="x", value="0", marks=(Mark(point=0.0, ends=(0.0, 0.0), shape="filled"),))
    assert interval_figure([lone], name="f", axis_label="points", zero=True).startswith("<svg")
    assert interval_figure([], name="f", axis_label="points").startswith("<svg")


def test_nothing_upright_crosses_a_label() -> None:
    """Grid, zero and band end below the line where a row's label stands: each stroke is shorter than half a row."""
    svg = interval_figure(ROWS, name="f", axis_label="points", zero=True)
    strokes = [
        re.findall(r"M [\d.]+ ([\d.]+) *\n? *L [\d.]+ ([\d.]+)", d) for d in re.findall(r'<path d="([^"]*)"', svg)
    ]
    upright = [abs(float(low) - float(high)) for found in strokes for low, high in found if low != high]
    assert upright
    assert max(upright) < 0.6 * 36


def test_many_rows_have_a_second_scale_above_them() -> None:
    def ticks(n: int) -> int:
        root = ET.fromstring(interval_figure([ROWS[0]] * n, name="f", axis_label="points"))
        texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        return sum(text == "40" for text in texts)

    assert (ticks(4), ticks(30)) == (1, 2)
