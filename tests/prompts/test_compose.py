from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import UserError
from eval_tasks.prompts import Composer, render_text
from eval_tasks.prompts.few_shot import Shots
from eval_tasks.records import BenchmarkVersion, FewShot, Item, PromptTemplate

MMLU = PromptTemplate(
    description=(
        "The following are multiple choice questions (with answers) about {{ subject | replace('_', ' ') }}.\n\n"
    ),
    item="{{ question.strip() }}\nA. {{ choices[0] }}\nB. {{ choices[1] }}\nAnswer:",
    choices=("A", "B"),
)


def _mmlu(item_id: str, question: str, target: int) -> Item:
    fields = {"question": question, "choices": ["one", "two"], "subject": "abstract_algebra", "answer": "AB"[target]}
    return Item(item_id=item_id, fields=fields, target=target)


def test_mmlu_prompt_to_the_letter(make_benchmark: Callable[..., BenchmarkVersion]) -> None:
    shots = [_mmlu("0", " First? ", 1), _mmlu("1", "Second?", 0)]
    benchmark = make_benchmark(MMLU, few_shot=FewShot(k=2, match="subject"))
    assert render_text(benchmark, _mmlu("x", "Third?\n", 0), shots) == (
        "The following are multiple choice questions (with answers) about abstract algebra.\n\n"
        "First?\nA. one\nB. two\nAnswer: B\n\n"
        "Second?\nA. one\nB. two\nAnswer: A\n\n"
        "Third?\nA. one\nB. two\nAnswer:"
    )


def test_gsm8k_prompt_to_the_letter(
    make_benchmark: Callable[..., BenchmarkVersion], make_item: Callable[..., Item]
) -> None:
    template = PromptTemplate(item="Question: {{ question }}\nAnswer:", target="{{ answer }}")
    benchmark = make_benchmark(template, few_shot=FewShot(k=1))
    shot = make_item("0", question="1+1?", answer="It is 2.\n#### 2")
    assert render_text(benchmark, make_item("x", question="2+2?", answer="no"), [shot]) == (
        "Question: 1+1?\nAnswer: It is 2.\n#### 2\n\nQuestion: 2+2?\nAnswer:"
    )


@pytest.mark.parametrize(
    ("target", "answer", "shown"),
    [("", 1, "two"), ("{{ answer }}", 1, "two"), ("{{ answer }}", "so two", "so two"), ("{{ answer }}", "B", "B")],
)
def test_a_choice_examples_answer(make_item: Callable[..., Item], target: str, answer: Any, shown: str) -> None:
    template = PromptTemplate(item="{{ q }}", choices="options", target=target, few_shot_delimiter="|")
    shot = make_item("0", 1, q="a", options=["one", "two"], answer=answer)
    composer = Composer("toy", "choice", template, Shots("toy", FewShot(k=1), [shot]))
    assert composer.prompt(make_item("x", 0, q="b", options=["x", "y"])).context == f"a {shown}|b"


def test_an_example_without_answer_has_no_delimiters(make_item: Callable[..., Item]) -> None:
    template = PromptTemplate(item="{{ q }};", target="{{ a }}")
    composer = Composer("toy", "generation", template, Shots("toy", FewShot(k=1), [make_item("0", q="1", a="")]))
    assert composer.prompt(make_item("x", q="2")).context == "1;2;"


def test_system_and_description(make_item: Callable[..., Item]) -> None:
    template = PromptTemplate(
        item="{{ q }}", system="Be brief.", description="About {{ q }}:\n", few_shot_delimiter="||"
    )
    shots = Shots("toy", None, [])
    assert Composer("toy", "generation", template, shots).prompt(make_item(q="x")).context == "Be brief.||About x:\nx"
    seen: list[Sequence[Mapping[str, str]]] = []

    def chat(messages: Sequence[Mapping[str, str]]) -> str:
        seen.append(messages)
        return "chat text"

    prompt = Composer("toy", "generation", template, shots, chat).prompt(make_item(q="x"))
    assert (prompt.context, prompt.delimiter) == ("chat text", "")
    assert seen == [[{"role": "system", "content": "Be brief.||About x:\n"}, {"role": "user", "content": "x"}]]


def test_a_failing_part_is_named(make_item: Callable[..., Item]) -> None:
    shots = Shots("toy", None, [])
    for part in ("item", "description", "system"):
        template = PromptTemplate(**{"item": "fine", part: "{{ nosuch }}"})
        with pytest.raises(UserError, match=rf"benchmark 'toy', item 'i7', prompt\.{part}: 'nosuch' is undefined"):
            Composer("toy", "generation", template, shots).prompt(make_item("i7", q="x"))


@pytest.mark.golden
@pytest.mark.parametrize("k", [0, 5])
def test_real_mmlu_prompts_have_their_subjects_examples(golden: Path, k: int) -> None:
    def rows(name: str) -> list[Item]:
        lines = gzip.decompress((golden / "mmlu" / name).read_bytes()).decode().strip().split("\n")
        return [
            Item(item_id=f"{n:08d}", fields=row, target="ABCD".index(row["answer"]))
            for n, row in enumerate(map(json.loads, lines))
        ]

    template = PromptTemplate(
        description=MMLU.description,
        item="{{ question.strip() }}\n{% for c in choices %}{{ 'ABCD'[loop.index0] }}. {{ c }}\n{% endfor %}Answer:",
        choices=("A", "B", "C", "D"),
    )
    shots = Shots("mmlu", FewShot(k=k, match="subject") if k else None, rows("dev.jsonl.gz"))
    composer = Composer("mmlu", "choice", template, shots)
    for item in rows("test.jsonl.gz")[::500]:
        text = composer.prompt(item).context
        assert text.count("\nAnswer:") == k + 1
        assert text.startswith(
            "The following are multiple choice questions (with answers) about "
            f"{item.fields['subject'].replace('_', ' ')}.\n\n"
        )
        assert text.endswith(f"\nD. {item.fields['choices'][3]}\nAnswer:")
