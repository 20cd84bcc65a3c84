"""Every command line that the documentation shows is one that exists, with its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from eval_tasks.cli.main import cli

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
_SHOWN = re.compile(r"(?:\.venv/bin/)?python -m eval_tasks ([^`\n]+)")


def lines(page: Path) -> list[str]:
    """What follows `python -m eval_tasks`, in code blocks and in running text."""
    text = re.sub(r"\\\n\s*", " ", page.read_text("utf-8"))
    return [match.split(" #")[0].strip() for match in _SHOWN.findall(text)]


def complaint(line: str) -> str:
    """What is wrong with one command line; '' for nothing."""
    try:
        words = shlex.split(line.replace("...", "").replace("|", " "))
    except ValueError as error:
        return f"{line}: {error}"
    command: click.Command = cli
    context = click.Context(cli)
    while words and isinstance(command, click.Group):
        if words[0].startswith("-") or words[0].isupper():
            return ""
        found = command.get_command(context, words[0])
        if found is None:
            return "" if command.invoke_without_command else f"{line}: no command {words[0]!r}"
        command, words = found, words[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in known | {"--help"}]
    return f"{line}: no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_command_lines_exist(page: Path) -> None:
    assert [found for line in lines(page) if (found := complaint(line))] == []


def test_the_documentation_shows_command_lines() -> None:
    assert sum(len(lines(page)) for page in PAGES) > 100


def test_a_wrong_line_is_found() -> None:
    assert complaint("benchmarks rgister x.yaml") == "benchmarks rgister x.yaml: no command 'rgister'"
    assert complaint("benchmarks check x --chekpoint y") == "benchmarks check x --chekpoint y: no option --chekpoint"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    dead = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert dead == []
