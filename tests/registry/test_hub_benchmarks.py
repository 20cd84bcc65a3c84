"""The shipped files of hub data sets: pinned, not registered unasked, and their prompts on a row of that shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.digests import digest_bytes
from eval_tasks.prompts import render_text
from eval_tasks.register import register_benchmark
from eval_tasks.registry import Rendering, hub_benchmarks, load_benchmark_file, render_choices, shipped_benchmarks
from eval_tasks.store import Store

QUESTION = {"question": "What is it?", "subject": "anatomy", "choices": ["w", "x", "y", "z"], "answer": 2}
ROWS: dict[str, dict[str, Any]] = {
    "arc-easy": {
        "id": "M1", "question": "Why?", "answerKey": "2",
        "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]},
    },
    "gsm8k": {"question": "1+1?", "answer": "It is 2.\n#### 2"},
    "hellaswag": {
        "activity_label": "Baking", "ctx_a": "[header] How to bake [title] Mix.", "ctx_b": "the cook",
        "endings": [" stirs. [step] Well.", "runs.", "sings.", "sleeps."], "label": "0",
    },
    "mmlu": QUESTION,
}  # fmt: skip
ROWS["arc-challenge"] = ROWS["arc-easy"]
PROMPTS = {
    "arc-easy": ("Question: Why?\nAnswer:", 1, ("a", "b", "c")),
    "arc-challenge": ("Question: Why?\nAnswer:", 1, ("a", "b", "c")),
    "gsm8k": ("Question: 1+1?\nAnswer:", "It is 2.\n#### 2", None),
    "hellaswag": ("Baking: How to bake. Mix. The cook", 0, ("stirs. Well.", "runs.", "sings.", "sleeps.")),
    "mmlu": (
        "The following are multiple choice questions (with answers) about anatomy.\n\n"
        "What is it?\nA. w\nB. x\nC. y\nD. z\nAnswer:",
        2,
        ("A", "B", "C", "D"),
    ),
}


def test_they_are_pinned_and_apart_from_what_is_registered_in_one_go() -> None:
    assert hub_benchmarks().keys() == PROMPTS.keys()
    assert not hub_benchmarks().keys() & shipped_benchmarks().keys()
    for path in hub_benchmarks().values():
        spec = load_benchmark_file(path)
        sources = [spec.source, *([spec.few_shot.source] if spec.few_shot and spec.few_shot.source else [])]
        assert all(source.hub and len(str(source.revision)) == 40 for source in sources)


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_the_prompt_of_a_row(store: Store, tmp_path: Path, name: str) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps(ROWS[name]) + "\n", "utf-8")
    document = yaml.safe_load(hub_benchmarks()[name].read_text("utf-8"))
    document["source"] = {"uri": data.name, "blake3": digest_bytes(data.read_bytes())}
    document.pop("few_shot", None)
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    benchmark = register_benchmark(store, path, "2026-01-01T00:00:00+00:00")
    (item,) = store.blobs.get_items(benchmark.items_blob)
    prompt, target, choices = PROMPTS[name]
    assert (render_text(benchmark, item, []), item.target) == (prompt, target)
    if choices is not None:
        rendering = Rendering(benchmark=name, item_id=item.item_id, fields=item.fields)
        assert render_choices(benchmark.template.choices, rendering) == choices


def test_mmlu_s_subjects_have_a_category_each() -> None:
    categories = load_benchmark_file(hub_benchmarks()["mmlu"]).item.categories
    assert {name: len(subjects) for name, subjects in categories.items()} == {
        "stem": 19, "humanities": 13, "social_sciences": 12, "other": 13,
    }  # fmt: skip
