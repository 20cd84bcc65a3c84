"""`detectable_format:*`."""

from __future__ import annotations

import pytest

from eval_tasks.scoring.instructions import bind


@pytest.mark.parametrize(
    ("text", "n"), [("* a\n- b", 2), ("** a **\n*", 0), ("  * a\n\t- b\ntext - c", 2), ("-\n- a", 2), ("1. a", 0)]
)
def test_bullets_are_counted_exactly(text: str, n: int) -> None:
    assert bind("detectable_format:number_bullet_lists", {"num_bullets": n}).followed(text)
    assert not bind("detectable_format:number_bullet_lists", {"num_bullets": n + 1}).followed(text)


@pytest.mark.parametrize(
    ("text", "followed"), [("So: My answer is no.", True), ("My answer is no", False), ("my answer is no.", False)]
)
def test_constrained_response(text: str, followed: bool) -> None:
    assert bind("detectable_format:constrained_response", {}).followed(text) is followed


@pytest.mark.parametrize(
    ("text", "n"), [("*a* and **b**", 2), ("****", 0), ("***x***", 2), ("* *", 0), ("*a\nb*", 0), ("*a* *b* *c*", 3)]
)
def test_highlights_are_counted_at_least(text: str, n: int) -> None:
    assert bind("detectable_format:number_highlighted_sections", {"num_highlights": n}).followed(text)
    assert not bind("detectable_format:number_highlighted_sections", {"num_highlights": n + 1}).followed(text)


@pytest.mark.parametrize(
    ("splitter", "text", "followed"),
    [
        ("Section", "Section 1 a\nSection 2 b", True),
        ("Section", "Section 1 a\nsection 2 b", False),
        ("Section", "Section X a\nSection Y b", False),
        ("Part (", "Part (1) and Part ( 2)", True),
    ],
)
def test_multiple_sections(splitter: str, text: str, followed: bool) -> None:
    kwargs = {"section_spliter": splitter, "num_sections": 2}
    assert bind("detectable_format:multiple_sections", kwargs).followed(text) is followed


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ('{"a": 1}', True),
        ('```json\n{"a": 1}\n```', True),
        ("```JSON\n[1]```", True),
        ("```\n3\n```", True),
        ('Here: {"a": 1}', False),
        ("{'a': 1}", False),
        ("[" * 100_000, False),
    ],
)
def test_json_format(text: str, followed: bool) -> None:
    assert bind("detectable_format:json_format", {}).followed(text) is followed


@pytest.mark.parametrize(
    ("text", "followed"), [("<<A title>>\ntext", True), ("<< >>", False), ("<A title>", False), ("<<a\nb>>", False)]
)
def test_title(text: str, followed: bool) -> None:
    assert bind("detectable_format:title", {}).followed(text) is followed
