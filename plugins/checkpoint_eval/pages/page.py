"""What a page is made of, and its HTML. Knows no store and no request.

Every text that is not made here is escaped; cells and lines may be `link` and `moment`, which escape their own parts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import jinja2
from airflow.configuration import conf
from markupsafe import Markup

from checkpoint_eval.pages.viewer import NOBODY, Right, Viewer
from eval_tasks.report import figures
from eval_tasks.report.tables import Column, Table
from eval_tasks.report.text import clean, printed

ROOT = "/checkpoint-eval/ui"
API = "/checkpoint-eval/api/v1"
_TEMPLATES = Path(__file__).parent / "templates"
_REPORT_TEMPLATES = Path(figures.__file__).parent / "templates"
_LONGEST_TEXT = 20_000
_HOLDERS = {"evaluate": "a user", "approve": "a user", "operate": "an operator"}

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
    """One field of a form. `options`: (value, words) to choose from; `rows`: more than one for a longer text.

    A `hidden` one carries what an earlier form has said.
    """

    name: str
    label: str
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    rows: int = 1
    required: bool = False
    hidden: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form. `action`: below the root; a form with `method` get filters, with post it changes something.

    Who lacks its `right` is told so in its place.
    """

    action: str
    fields: tuple[Field, ...]
    submit: str
    method: str = "post"
    name: str = "form"
    right: Right = "read"


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
    """A page. `here`: its entry of the menu; `crumbs`: (path below the root, words) of the pages above it.

    `refresh`: seconds after which a browser asks for it again, 0 for never.
    """

    title: str
    here: str
    refresh: int = 0
    lead: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    crumbs: tuple[tuple[str, str], ...] = ()


def html(page: Page, viewer: Viewer = NOBODY) -> str:
    """The page as HTML, with the forms that this viewer may send."""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(page=page, root=below(ROOT), menu=MENU, viewer=viewer, holders=_HOLDERS)
    )


def below(path: str) -> str:
    """A path of this server, below what `[api] base_url` puts before all of them."""
    return _prefix() + path


@functools.cache
def _prefix() -> str:
    return urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")


def url(path: str, **query: str | int | None) -> str:
    """An address below the root; parameters without a value are left out."""
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{below(ROOT)}/{quote(path)}{f'?{urlencode(asked)}' if asked else ''}"


def link(words: str, path: str, **query: str | int | None) -> Markup:
    """A link to a page."""
    return Markup('<a href="{}">{}</a>').format(url(path, **query), clean(words))


def outward(words: str, path: str) -> Markup:
    """A link to a path of this server outside these pages. It leaves the frame that Airflow shows pages in."""
    return Markup('<a href="{}" target="_top">{}</a>').format(below(path), clean(words))


def moment(text: str | None) -> Markup:
    """A time in UTC; a script says on hover what that is where the reader is."""
    if not text:
        return Markup("–")
    shown = text[:16].replace("T", " ")
    return Markup('<time datetime="{}">{} UTC</time>').format(text, shown)


def line(template: str, *parts: str) -> Markup:
    """A sentence of ours with `moment` and `link` in it; any other part is escaped."""
    return Markup(template).format(*parts)  # noqa: S704  templates are written in this package


def listing(
    name: str,
    caption: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    empty: str = "Nothing here yet.",
    notes: tuple[str, ...] = (),
    forms: tuple[Form, ...] = (),
    links: tuple[Markup, ...] = (),
) -> Section:
    """A section of one table."""
    return Section(
        title=title,
        name=name,
        notes=notes,
        forms=forms,
        links=links,
        tables=(table(f"{name}-table", caption, columns, rows),),
        empty=empty,
    )


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
