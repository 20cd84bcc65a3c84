"""A converted task -> rows that its templates can be rendered from: what its columns hold is found by trying.

A task file says which columns it reads and not what is in them. Each column has a few likely contents; the first
combination under which prompt, choices and gold answer all come out is taken.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eval_tasks.datasets.items import target_of
from eval_tasks.errors import UserError
from eval_tasks.registry import BenchmarkSpec, Rendering, is_template, render_choices
from eval_tasks.registry.templates import names_in

Content = Callable[[int], Any]
_MOST_TRIES = 40_000
_PROBES = 4

_WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet", "jade")


def made_rows(spec: BenchmarkSpec, n: int, first: int = 0) -> list[dict[str, Any]] | None:
    """`n` rows, numbered from `first`; None when no combination of contents suits the task."""
    names = sorted(_columns(spec))
    options = [_contents(name, spec) for name in names]
    for chosen in itertools.islice(itertools.product(*options), _MOST_TRIES):
        columns = dict(zip(names, chosen, strict=True))
        if all(_suits(spec, _row(columns, number)) for number in range(_PROBES)):
            rows = [_row(columns, number) for number in range(first, first + n)]
            return rows if all(_suits(spec, row) for row in rows) else None
    return None


def _columns(spec: BenchmarkSpec) -> set[str]:
    prompt = spec.prompt
    texts = [prompt.item, prompt.description, prompt.target]
    if isinstance(prompt.choices, str):
        texts.append(prompt.choices if is_template(prompt.choices) else "{{ " + prompt.choices + " }}")
    else:
        texts += prompt.choices
    if target := spec.item.target:
        texts.append(target if is_template(target) else "{{ " + target + " }}")
    read_by_filter = {"choices"} if "multi_choice_regex" in str(spec.scorer.parameters) else set()
    return {name for text in texts for name in names_in(text)} | read_by_filter


def _row(columns: Mapping[str, Content], number: int) -> dict[str, Any]:
    return {name: content(number) for name, content in columns.items()} | {"row": number}


def _suits(spec: BenchmarkSpec, row: Mapping[str, Any]) -> bool:
    """Whether every part renders, to text worth comparing, and the gold answer is one of the choices."""
    fields = {name: value for name, value in row.items() if value is not None}
    rendering = Rendering(benchmark=spec.name, item_id="0", fields=fields)
    try:
        gold = target_of(spec, fields, "0", "row")
        item = rendering.text("item", spec.prompt.item)
        answer = rendering.text("target", spec.prompt.target)
        rendering.text("description", spec.prompt.description)
        if spec.kind == "loss":
            return bool(item.strip())
        if spec.kind != "choice":
            return gold not in ("", None) and (not spec.prompt.target or bool(answer.strip()))
        choices = render_choices(spec.prompt.choices, rendering)
    except UserError:
        return False
    multi = len(choices) == 1 or len(set(choices)) == len(choices)
    return multi and all(choice.strip() for choice in choices) and not item.isdigit()


def _contents(name: str, spec: BenchmarkSpec) -> Sequence[Content]:
    """What a column of that name may hold, the likeliest first."""
    if re.fullmatch(_TEXTS, name):
        found: list[Content] = [_text_of(name)]
    else:
        fixed = [c for c in spec.prompt.choices if "{" not in c] if isinstance(spec.prompt.choices, list) else []
        found = [*_NAMED.get(name, ()), *_of(fixed), *_ANY]
    return [_sometimes(content) for content in found] if _may_be_null(name, spec) else found


def _may_be_null(name: str, spec: BenchmarkSpec) -> bool:
    texts = (spec.prompt.item, spec.prompt.target, spec.item.target or "")
    return any(re.search(rf"\b{name} is (not )?none\b", text) for text in texts)


def _sometimes(content: Content) -> Content:
    return lambda number: None if number % 2 else content(number)


def _of(fixed: Sequence[str]) -> list[Content]:
    """One of the task's own fixed choices."""
    return [lambda number: fixed[number % len(fixed)]] if fixed else []


def _text_of(name: str) -> Content:
    """Texts that differ from column to column."""
    gap = " <...>" if name == "question" else ""  # where a task puts its choices
    return lambda number: f"{_text(number + sum(map(ord, name)) % 7)}{gap} {name[:1].lower()}{sum(map(ord, name))}"


def _text(number: int) -> str:
    a, b, c = (_WORDS[(number * k + k) % len(_WORDS)] for k in (1, 3, 7))
    return f"{a} stands by {b} {number}, and {c}"


def _list(number: int) -> list[str]:
    return [f"{word} {number}" for word in _WORDS[number % 5 : number % 5 + 4]]


def _five(number: int) -> list[str]:
    return [f"{word} {number}" for word in _WORDS[number % 5 : number % 5 + 5]]


def _labelled(number: int) -> dict[str, list[str]]:
    return {"text": _list(number), "label": list("ABCD")}


def _labelled_five(number: int) -> dict[str, list[str]]:
    return {"text": _five(number), "label": list("ABCDE")}


def _worked(number: int) -> str:
    return f"First {number} and then {number + 3}, which is more.\n#### {2 * number + 3}"


_TEXTS = (
    r"[A-E]|option_?s?_?[a-eA-E]|mc_answer\d|sol\d|answer[A-E]|ending\d|.*[sS]entence.*\d?|sentence_(good|bad)|premise|"
    r"hypothesis|.*passage|context|[qQ]uestion.*|query.*|text\d?|story|distractor\d|correct_answer|support|goal|tweet|review|"
    r"headline_text|instruction|inputs?|startphrase|input_sentence_\d|Input.*\d|RandomFifth.*|paragraph|scenario|excuse|document_str|"
    r"retrieved_case.*|statement\d|facts_.*|defendant_claim|effect|cause|qtext|ex_question|prompt.*|content|source|correction|"
    r"sentence_quiz\d|correct|wrong|answer_(not_)?matching_behavior|trait|topic|pronoun|occupation|participant|"
    r"context_formula|hypothesis_formula|input_question"
)

_NAMED: Mapping[str, Sequence[Content]] = {
    "answer": (_worked, lambda number: {"aliases": _list(number), "value": f"amber {number}"}),
    "answers": (
        lambda number: [{"aid": k + 1, "atext": text} for k, text in enumerate(_list(number))],
        lambda number: {"text": _list(number)},
    ),
    "start1": (lambda number: number % 3,),
    "end1": (lambda number: number % 3 + 4,),
    "polarity": (lambda number: ("positif", "negatif", "neutre")[number % 3],),
    "input_choice_list": (lambda number: dict(zip("ABCD", _list(number), strict=True)),),
    "input_correct_responses": (lambda number: ["ABCD"[number % 4]],),
    "targets": (lambda number: [_list(number)[number % 4]],),
    "multiple_choice_targets": (_list,),
    "multiple_choice_scores": (lambda number: [int(k == number % 4) for k in range(4)],),
    "mc1_targets": (lambda number: {"choices": _list(number), "labels": [1, 0, 0, 0]},),
    "answer_options": (lambda number: {"answer_id": list("1234"), "answer_str": _list(number)},),
    "ctxs": (lambda number: [{"title": _text(number), "text": _text(number + k)} for k in range(10)],),
}

_ANY: Sequence[Content] = (
    _text,
    lambda number: number % 2,
    lambda number: "ABCD"[number % 4],
    lambda number: str(number % 2 + 1),
    _list,
    lambda number: number % 2 == 0,
    _labelled,
    _labelled_five,
    lambda number: number % 3 + 1,
    lambda number: number % 2 + 1,
    lambda number: "YN"[number % 2],
)
