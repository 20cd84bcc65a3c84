from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.digests import digest_value
from eval_tasks.prompts import prompt_digest, template_digest
from eval_tasks.records import DataSource, FewShot, Item, PromptTemplate, ReasoningBlock, Sampling

OTHER: dict[str, Any] = {"choices": ("x",), "stop": ("\n",), "chat": "always", "bos": "always"}


def test_every_template_field_is_in_the_digest() -> None:
    base = PromptTemplate(item="{{ q }}")
    digests = {template_digest(base, None, [])}
    for field in fields(PromptTemplate):
        digests.add(template_digest(replace(base, **{field.name: OTHER.get(field.name, "other")}), None, []))
    assert len(digests) == 1 + len(fields(PromptTemplate))


def test_examples_and_how_they_are_chosen_are_in_the_digest_and_their_place_is_not() -> None:
    base = PromptTemplate(item="{{ q }}")
    rows = [Item(item_id=f"{n}", fields={"q": n}, target=0) for n in range(3)]
    few_shot = FewShot(k=2, source=DataSource(uri="a", blake3="b"))
    first = template_digest(base, few_shot, rows)
    assert template_digest(base, replace(few_shot, source=None), rows[::-1]) == first
    others = [
        template_digest(base, None, rows),
        *(template_digest(base, replace(few_shot, **c), rows) for c in ({"k": 1}, {"seed": 1}, {"select": "seeded"})),
        template_digest(base, replace(few_shot, match="q"), rows),
        template_digest(base, few_shot, rows[:2]),
        template_digest(base, few_shot, [replace(rows[0], target=1), *rows[1:]]),
    ]
    assert len({first, *others}) == 8


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 300_000)), st.lists(st.text()), st.integers(0, 4096))
def test_prompt_digest_is_that_of_the_canonical_json(ids: list[int], stops: list[str], max_tokens: int) -> None:
    assert prompt_digest(ids, [ids, [1]], stops, max_tokens) == digest_value([ids, [ids, [1]], stops, max_tokens])


def test_sampling_and_markers_are_in_the_prompt_digest_and_names_and_reasons_are_not() -> None:
    sampling = Sampling(temperature=0.6, samples=8, reason="why")
    block = ReasoningBlock(name="think", start="<think>", end="</think>")
    asked = [
        prompt_digest([1], [], [], 9, sampling=s, reasoning=r)
        for s in (None, sampling, replace(sampling, top_k=3))
        for r in (None, block, replace(block, begins_open=True))
    ]
    assert len(set(asked)) == 9
    assert asked[0] == prompt_digest([1], [], [], 9)
    renamed = {"sampling": replace(sampling, reason="x"), "reasoning": replace(block, name="x")}
    assert prompt_digest([1], [], [], 9, **renamed) == asked[4]
