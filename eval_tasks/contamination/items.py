"""A benchmark's items -> their texts by section, without template words: what is looked for in a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eval_tasks.errors import UserError
from eval_tasks.records import BenchmarkVersion, Item
from eval_tasks.registry import Rendering, render_choices
from eval_tasks.registry.templates import is_template, literal, names_in

Section = Literal["question", "choices", "answer"]
SECTIONS: tuple[Section, ...] = ("question", "choices", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemText:
    """The texts of one item: the fields that its question is made of, its choices, and its right answer."""

    item_id: str
    question: tuple[str, ...]
    choices: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()


def item_texts(benchmark: BenchmarkVersion, items: Iterable[Item]) -> list[ItemText]:
    """The texts of `items`, in order.

    The question is every text in the fields that the item's template reads; lists in them are choices. The answer is
    the right choice, else the target's text. Template and few-shot text is no part of any.
    """
    read = sorted(names_in(benchmark.template.item))
    return [_item_text(benchmark, item, read) for item in items]


def _item_text(benchmark: BenchmarkVersion, item: Item, read: list[str]) -> ItemText:
    choices = _choices(benchmark, item)
    question: list[str] = []
    for name in read:
        value = item.fields.get(name)
        if isinstance(value, str):
            question.append(value)
        elif isinstance(value, list | tuple):
            choices = choices or tuple(text for text in _strings(value))
        elif isinstance(value, Mapping):
            question += _strings(value)
    answer = _answer(benchmark, item, choices)
    question = [text for text in question if text not in choices and text not in answer]
    return ItemText(item_id=item.item_id, question=tuple(question), choices=choices, answer=answer)


def _choices(benchmark: BenchmarkVersion, item: Item) -> tuple[str, ...]:
    """The texts of the choices; labels such as A to D, which every item has, are none."""
    template = benchmark.template.choices
    if benchmark.kind != "choice" or not template:
        return ()
    if not isinstance(template, str) and not any(is_template(choice) for choice in template):
        return ()
    try:
        return render_choices(template, Rendering(benchmark=benchmark.name, item_id=item.item_id, fields=item.fields))
    except UserError:
        return ()  # the plan says what is wrong with such an item


def _answer(benchmark: BenchmarkVersion, item: Item, choices: tuple[str, ...]) -> tuple[str, ...]:
    target = item.target
    if benchmark.kind == "loss" or target is None:
        return ()
    if choices:
        index = _index(target)
        return (choices[index],) if index is not None and index < len(choices) else ()
    return tuple(_strings(target if isinstance(target, list | tuple | Mapping) else [target]))


def _index(target: Any) -> int | None:
    """A gold index, also as its letter, or the first of several."""
    if isinstance(target, list | tuple):
        target = target[0] if target else None
    if isinstance(target, bool) or target is None:
        return None
    if isinstance(target, str) and len(target) == 1 and target.isascii() and target.isalpha():
        return ord(target.upper()) - ord("A")
    value = literal(target) if isinstance(target, str) else target
    return value if isinstance(value, int) and value >= 0 else None


def _strings(value: Any) -> list[str]:
    """Every text and number in nested lists and mappings, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _strings(each)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
