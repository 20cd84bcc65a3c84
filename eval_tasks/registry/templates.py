"""Template text and an item's fields in, text out: Jinja2 in an immutable sandbox, strict about undefined names.

Benchmarks come from files that anyone may write, so a template can neither reach Python nor change its input. A final
line break is kept, since it is part of a prompt. Knows no tokenizer and no benchmark record beyond names for messages.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
import jinja2.meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from eval_tasks.errors import UserError, did_you_mean

TEMPLATE_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
)
"""What the evaluation of a template's expressions can raise."""

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
)


def _regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """The one filter that lm-eval 0.4.9 adds to Jinja's own."""
    return re.sub(pattern, replacement, text, count=count)


_ENVIRONMENT.filters["regex_replace"] = _regex_replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One item of one benchmark, to be rendered part by part; the names are for messages."""

    benchmark: str
    item_id: str
    fields: Mapping[str, Any]

    def text(self, part: str, template: str) -> str:
        """`template` over the item's fields. Raises UserError naming benchmark, item, part and what failed."""
        if "{" not in template:
            return template
        try:
            return _compiled(template).render(self.fields)
        except jinja2.UndefinedError as error:
            raise self.error(part, f"{error.message}; {self._fields_near(str(error.message))}") from error
        except TEMPLATE_FAILURES as error:
            raise self.error(part, str(error)) from error

    def error(self, part: str, problem: str) -> UserError:
        """A UserError about one part of this item's prompt."""
        return UserError(f"benchmark {self.benchmark!r}, item {self.item_id!r}, prompt.{part}: {problem}")

    def _fields_near(self, message: str) -> str:
        parts = message.split("'")
        return "fields: " + did_you_mean(parts[1] if len(parts) > 1 else message, map(str, self.fields))


def render_choices(choices: str | Sequence[str], item: Rendering) -> tuple[str, ...]:
    """The texts of an item's choices, without delimiter.

    `choices` names a field that holds a list (texts are stripped: a blank that only one choice carries gives it away),
    is a template that gives a list such as ``{{ [sol1, sol2] }}``, or a sequence of templates; those two are kept as
    rendered. Raises UserError when there are none or no list comes of it.
    """
    if not isinstance(choices, str):
        return tuple(item.text(f"choices[{n}]", template) for n, template in enumerate(choices))
    if is_template(choices):
        values = literal(item.text("choices", choices))
        if not isinstance(values, list | tuple) or not values:
            raise item.error("choices", f"the template must give a list of texts, not {values!r}")
        return tuple(map(str, values))
    if choices not in item.fields:
        raise item.error("choices", f"no field {choices!r}; {did_you_mean(choices, map(str, item.fields))}")
    values = item.fields[choices]
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise item.error("choices", f"field {choices!r} must hold a list of texts, not {values!r}")
    return tuple(str(value).strip() for value in values)


def is_template(text: str) -> bool:
    """Whether a text that may name a column is a template instead."""
    return "{{" in text or "{%" in text


def literal(text: str) -> Any:
    """The list or number that a template has written, else the text itself: templates give nothing but text."""
    if text.isdecimal() or (text[:1] in "[(" and text[-1:] in "])"):
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return text
    return text


def check_template(template: str) -> None:
    """Raises ValueError with line and reason when `template` is not Jinja2."""
    try:
        _compiled(template)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"not a template: line {error.lineno}: {error.message}") from error


def names_in(template: str) -> set[str]:
    """The fields that a template reads."""
    return set(jinja2.meta.find_undeclared_variables(_ENVIRONMENT.parse(template)))


@functools.lru_cache(maxsize=512)
def _compiled(template: str) -> jinja2.Template:
    return _ENVIRONMENT.from_string(template)
