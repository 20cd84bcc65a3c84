from __future__ import annotations

import pytest

from eval_tasks.errors import UserError
from eval_tasks.registry.templates import Rendering, check_template, literal, render_choices


def _item(**fields: object) -> Rendering:
    return Rendering(benchmark="toy", item_id="7", fields=fields)


def test_text_keeps_line_breaks_and_escapes_nothing() -> None:
    assert _item(q="<a> & 'b'").text("item", "Q: {{ q }}\n\n") == "Q: <a> & 'b'\n\n"


def test_an_undefined_name_is_an_error_with_everything_named() -> None:
    with pytest.raises(UserError, match=r"benchmark 'toy', item '7', prompt\.item: 'qestion' is undefined.*'question'"):
        _item(question="x").text("item", "{{ qestion }}")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ words.append(1) }}",
        "{{ range(10**9) | list }}",
        "{{ 1 // 0 }}",
        "{{ q+1 }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_a_template_can_neither_break_out_nor_crash(template: str) -> None:
    item = _item(q="x", words=["a"])
    with pytest.raises(UserError, match=r"prompt\.item"):
        item.text("item", template)
    assert item.fields["words"] == ["a"]


def test_choices_of_a_column_are_stripped_and_of_templates_kept() -> None:
    assert render_choices("options", _item(options=[" yes", "no ", 3])) == ("yes", "no", "3")
    assert render_choices(("{{ a }}", " B"), _item(a="x")) == ("x", " B")


@pytest.mark.parametrize(("value", "problem"), [("yes", "list of texts"), ([], "list of texts")])
def test_choices_must_be_a_list(value: object, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        render_choices("options", _item(options=value))


def test_choices_of_an_unknown_column() -> None:
    with pytest.raises(UserError, match="close: 'options'"):
        render_choices("option", _item(options=["a"]))


def test_syntax_errors_name_the_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        check_template("fine\n{% if %}")


def test_choices_of_a_template_are_kept_as_it_gives_them() -> None:
    assert render_choices("{{ [a, ' ' ~ b] }}", _item(a="it's", b='"x"\n')) == ("it's", ' "x"\n')
    with pytest.raises(UserError, match="must give a list of texts, not 'plain'"):
        render_choices("{{ a }}", _item(a="plain"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("[1, 'a']", [1, "a"]),
        ("(1,)", (1,)),
        ("[1", "[1"),
        ("[x]", "[x]"),
        ("007", "007"),
        ("-1", "-1"),
        ("", ""),
    ],
)
def test_literals_of_what_a_template_wrote(text: str, value: object) -> None:
    assert literal(text) == value


def test_patterns_are_replaced_as_lm_eval_does() -> None:
    assert _item(q="a1b2").text("item", "{{ q | regex_replace('[0-9]', '#') }}") == "a#b#"
    with pytest.raises(UserError, match=r"prompt\.item"):
        _item(q="a").text("item", "{{ q | regex_replace('(', '') }}")
