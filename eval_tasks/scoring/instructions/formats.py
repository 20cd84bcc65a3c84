"""`detectable_format:*`: bullets, highlights, sections, titles, JSON and fixed answers."""

from __future__ import annotations

import json
import re

from eval_tasks.scoring.instructions.registry import count, instruction, text

_BULLETS = (re.compile(r"^\s*\*[^\*].*$", re.MULTILINE), re.compile(r"^\s*-.*$", re.MULTILINE))
_HIGHLIGHTS = ((re.compile(r"\*[^\n\*]*\*"), 1), (re.compile(r"\*\*[^\n\*]*\*\*"), 2))
_TITLE = re.compile(r"<<[^\n]+>>")
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


@instruction("detectable_format:number_bullet_lists", num_bullets=count)
def number_bullet_lists(response: str, *, num_bullets: int) -> bool:
    """Exactly that many lines that start with ``*`` (not ``**``) or ``-``."""
    return sum(len(bullet.findall(response)) for bullet in _BULLETS) == num_bullets


@instruction("detectable_format:constrained_response")
def constrained_response(response: str) -> bool:
    """One of the three fixed answers occurs."""
    return any(answer in response for answer in _ANSWERS)


@instruction("detectable_format:number_highlighted_sections", num_highlights=count)
def number_highlighted_sections(response: str, *, num_highlights: int) -> bool:
    """At least that many ``*highlights*``; ``**bold**`` ones count too, empty ones do not."""
    found = sum(
        1
        for pattern, n_marks in _HIGHLIGHTS
        for highlight in pattern.findall(response)
        if highlight[n_marks:-n_marks].strip()
    )
    return found >= num_highlights


@instruction("detectable_format:multiple_sections", section_spliter=text, num_sections=count)
def multiple_sections(response: str, *, section_spliter: str, num_sections: int) -> bool:
    """At least that many headings: the splitter (a regular expression), then a number."""
    splitter = section_spliter.strip()
    try:
        heading = re.compile(rf"\s?{splitter}\s?\d+\s?")
    except re.error:
        heading = re.compile(rf"\s?{re.escape(splitter)}\s?\d+\s?")
    return sum(1 for _ in heading.finditer(response)) >= num_sections


@instruction("detectable_format:json_format")
def json_format(response: str) -> bool:
    """The whole response is JSON, a Markdown code fence around it apart."""
    body = response.strip()
    for fence in _FENCES:
        body = body.removeprefix(fence)
    try:
        json.loads(body.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


@instruction("detectable_format:title")
def title(response: str) -> bool:
    """A title in double angle brackets that is not blank."""
    return any(found.lstrip("<").rstrip(">").strip() for found in _TITLE.findall(response))
