"""What a page is made of, and its HTML. Knows no store and no request.

Every text that is not made here is escaped; cells may be `link` and `moment`, which escape their own parts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup

from eval_tasks.report import figures
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import clean, printed

ROOT = "/checkpoint-eval/ui"
_TEMPLATES = Path(__file__).parent / "templates"
_REPORT_TEMPLATES = Path(figures.__file__).parent / "templates"
_LONGEST_TEXT = 20_000

MENU = (
    ("runs", "Runs"),
    ("training-runs", "Training runs"),
    ("comparisons", "Comparisons"),
    ("benchmarks", "Benchmarks"),
    ("graders", "Graders"),
    ("rules", "Rules"),
    ("determinism", "Determinism"),
    ("alerts", "Alerts"),
    ("costs", "Costs"),
    ("release", "Release"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form. `options`: (value, words) to choose from; `rows`: more than one for a longer text."""

    name: str
    label: str
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    rows: int = 1
    required: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form. `action`: below the root; a form with `method` get filters, with post it changes something."""

    action: str
    fields: tuple[Field, ...]
    submit: str
    method: str = "post"
    name: str = "form"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Raw text of a model or a person, kept as it is."""

    label: str
    body: str
    is_open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page. `empty`: what is said in place of a table without rows."""

    title: str
    name: str
    notes: tuple[str, ...] = ()
    figures: tuple[figures.Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    texts: tuple[Text, ...] = ()
    forms: tuple[Form, ...] = ()
    links: tuple[Markup, ...] = ()
    empty: str = "Nothing here yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. `here`: its entry of the menu; `crumbs`: (path below the root, words) of the pages above it."""

    title: str
    here: str
    lead: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    crumbs: tuple[tuple[str, str], ...] = ()


def html(page: Page, *, user: str = "", pages: Sequence[str] = ()) -> str:
    """The page as HTML. `pages`: the menu's entries that this user may open; all where none are given."""
    menu = [(path, words) for path, words in MENU if not pages or path in pages]
    return _environment().get_template("page.html.j2").render(page=page, root=ROOT, menu=menu, user=user)


def url(path: str, **query: str | int | None) -> str:
    """An address below the root; parameters without a value are left out."""
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{ROOT}/{quote(path)}{f'?{urlencode(asked)}' if asked else ''}"


def link(words: str, path: str, **query: str | int | None) -> Markup:
    """A link to a page."""
    return Markup('<a href="{}">{}</a>').format(url(path, **query), clean(words))


def outward(words: str, address: str) -> Markup:
    """A link to another page of this server."""
    return Markup('<a href="{}">{}</a>').format(address, clean(words))


def moment(text: str | None) -> Markup:
    """A time in UTC; a script says on hover what that is where the reader is."""
    if not text:
        return Markup("–")
    shown = text[:16].replace("T", " ")
    return Markup('<time datetime="{}">{} UTC</time>').format(text, shown)


def table(name: str, caption: str, columns: Mapping[str, str], rows: Sequence[Sequence[str]]) -> Table:
    """A table. `columns`: heading to style (number, code or '')."""
    return Table(
        name=name,
        caption=caption,
        columns=tuple(Column(heading=heading, style=style) for heading, style in columns.items()),
        rows=tuple(tuple(row) for row in rows),
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, _REPORT_TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printed(value, _LONGEST_TEXT),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawn"] = lambda figure: Markup(figure.svg)  # noqa: S704  matplotlib wrote and escaped it
    return environment


@functools.cache
def stylesheet() -> str:
    """The reports' own style, and what pages have besides."""
    return _environment().get_template("pages.css.j2").render()
