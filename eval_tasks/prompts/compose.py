"""An item and its examples -> the text of its prompt, plain or as a chat. Knows no token.

Plain text is composed as lm-eval 0.4.9 does: description, then per example its text, delimiter, answer and few-shot
delimiter, then the item. As a chat, system text and description are the system message, examples and item one user
message, and no delimiter stands before an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_tasks.prompts.few_shot import Shots
from eval_tasks.records import BenchmarkVersion, Item, PromptTemplate
from eval_tasks.records.benchmark import Kind
from eval_tasks.registry import Rendering, render_choices

Chat = Callable[[Sequence[Mapping[str, str]]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Text of one item. `delimiter` stands between `context` and each of `choices`."""

    context: str
    choices: tuple[str, ...]
    delimiter: str


class Composer:
    """Composes the prompts of one benchmark. `chat` renders messages through a chat template; None is plain text."""

    def __init__(self, name: str, kind: Kind, template: PromptTemplate, shots: Shots, chat: Chat | None = None) -> None:
        self._name = name
        self._kind = kind
        self._template = template
        self._shots = shots
        self._chat = chat
        self._shot_texts: dict[str, str] = {}

    def prompt(self, item: Item) -> Prompt:
        """The prompt of `item`. Raises UserError naming benchmark, item and template part when one fails."""
        template = self._template
        part = self._rendering(item)
        if self._kind == "loss":
            return Prompt(context=part.text("item", template.item), choices=(), delimiter="")
        choices = render_choices(template.choices, part) if self._kind == "choice" else ()
        if self._chat is None:
            context = "".join(self._opening_and_body(item))
            return Prompt(context=context, choices=choices, delimiter=template.target_delimiter)
        return Prompt(context=self._chat(self.messages(item)), choices=choices, delimiter="")

    def messages(self, item: Item) -> list[dict[str, str]]:
        """The prompt of `item` as the messages of a chat."""
        opening, body = self._opening_and_body(item)
        system = [{"role": "system", "content": opening}] if opening else []
        return [*system, {"role": "user", "content": body}]

    def _opening_and_body(self, item: Item) -> tuple[str, str]:
        template = self._template
        part = self._rendering(item)
        text = part.text("item", template.item)
        system = part.text("system", template.system)
        description = part.text("description", template.description)
        opening = (
            template.few_shot_delimiter.join([system, description]) if system and description else system + description
        )
        return opening, "".join(self._example(shot) for shot in self._shots.chosen(item)) + text

    def _example(self, shot: Item) -> str:
        if shot.item_id not in self._shot_texts:
            template = self._template
            text = self._rendering(shot).text("item", template.item)
            answer = self._answer(shot)
            if answer:
                text += template.target_delimiter + answer + template.few_shot_delimiter
            self._shot_texts[shot.item_id] = text
        return self._shot_texts[shot.item_id]

    def _answer(self, shot: Item) -> str:
        """A worked example's answer; of a choice, the text of the gold one, where the template gives but its index."""
        part = self._rendering(shot)
        text = part.text("target", self._template.target)
        if self._kind != "choice":
            return text
        choices = render_choices(self._template.choices, part)
        gold = shot.target[0] if isinstance(shot.target, list | tuple) else shot.target
        if not text or (text == str(gold) and text not in choices):
            return choices[gold]
        return text

    def _rendering(self, item: Item) -> Rendering:
        return Rendering(benchmark=self._name, item_id=item.item_id, fields=item.fields)


def plain_prompts(
    benchmark: BenchmarkVersion, items: Sequence[Item], few_shot_items: Sequence[Item]
) -> dict[str, Prompt]:
    """item_id -> the prompt of each item as plain text, to show it to a person."""
    shots = Shots(benchmark.name, benchmark.few_shot, few_shot_items)
    composer = Composer(benchmark.name, benchmark.kind, benchmark.template, shots)
    return {item.item_id: composer.prompt(item) for item in items}


def render_text(benchmark: BenchmarkVersion, item: Item, few_shot_items: Sequence[Item]) -> str:
    """The text that stands before an item's answer, to show it to a person."""
    return plain_prompts(benchmark, [item], few_shot_items)[item.item_id].context


def messages_of(benchmark: BenchmarkVersion, item: Item) -> list[dict[str, str]]:
    """The prompt of an item of a benchmark without examples, as the messages of a chat."""
    return Composer(benchmark.name, benchmark.kind, benchmark.template, Shots(benchmark.name, None, [])).messages(item)
