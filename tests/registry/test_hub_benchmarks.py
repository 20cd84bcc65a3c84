"""The shipped files of hub data sets: pinned, not registered unasked, and registered whole from a hub that has them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_tasks.prompts import render_text
from eval_tasks.records import Response
from eval_tasks.register import register_benchmark
from eval_tasks.registry import Rendering, hub_benchmarks, load_benchmark_file, render_choices, shipped_benchmarks
from eval_tasks.scoring import score
from eval_tasks.store import Store
from tests.datasets.fake_hub import FakeHub, reached

QUESTION = {"question": "What is it?", "subject": "anatomy", "choices": ["w", "x", "y", "z"], "answer": 2}
ARC = {"id": "M1", "question": "Why?", "answerKey": "2", "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]}}
PRO = {
    "question_id": 70, "question": "How?", "options": ["so", "thus"], "answer": "B", "answer_index": 1,
    "cot_content": "A: Let's think step by step. It is thus. The answer is (B).", "category": "computer science",
}  # fmt: skip
FILES: dict[str, dict[str, dict[str, Any]]] = {
    "arc-easy": {"ARC-Easy/test-00000-of-00001.parquet": ARC},
    "arc-challenge": {"ARC-Challenge/test-00000-of-00001.parquet": ARC},
    "gsm8k": {
        "main/test-00000-of-00001.parquet": {"question": "1+1?", "answer": "It is 2.\n#### 2"},
        "main/train-00000-of-00001.parquet": {"question": "2+1?", "answer": "It is 3.\n#### 3"},
    },
    "hellaswag": {
        "data/validation-00000-of-00001.parquet": {
            "activity_label": "Baking", "ctx_a": "[header] How to bake [title] Mix.", "ctx_b": "the cook",
            "endings": [" stirs. [step] Well.", "runs.", "sings.", "sleeps."], "label": "0",
        }
    },
    "ifeval": {
        "ifeval_input_data.jsonl": {
            "key": 7, "prompt": "No commas.", "instruction_id_list": ["punctuation:no_comma"],
            "kwargs": [{"num_words": None}],
        }
    },
    "mmlu": {
        "all/test-00000-of-00001.parquet": QUESTION,
        "all/dev-00000-of-00001.parquet": {**QUESTION, "question": "Which?"},
    },
    "mmlu-pro": {
        "data/test-00000-of-00001.parquet": PRO,
        "data/validation-00000-of-00001.parquet": {**PRO, "question": "Whence?"},
    },
    "mmlu-text": {"all/test-00000-of-00001.parquet": QUESTION},
    "winogrande": {
        "winogrande_xl/validation-00000-of-00001.parquet": {
            "sentence": "Ann helped Bo because _ was kind.", "option1": "Ann", "option2": "Bo", "answer": "1",
        }
    },
}  # fmt: skip
"""One row of each file, by the paths that the repositories have at the pinned revisions."""
ABOUT = "The following are multiple choice questions (with answers) about"
PRO_ABOUT = (
    f'{ABOUT} computer science. Think step by step and then finish your answer with "the answer is (X)" where X is the '
    "correct letter choice.\n"
)
PROMPTS: dict[str, tuple[str, Any, tuple[str, ...] | None]] = {
    "arc-easy": ("Question: Why?\nAnswer:", 1, ("a", "b", "c")),
    "arc-challenge": ("Question: Why?\nAnswer:", 1, ("a", "b", "c")),
    "gsm8k": (
        "Question: 2+1?\nAnswer: It is 3.\n#### 3\n\n" * 5 + "Question: 1+1?\nAnswer:", "It is 2.\n#### 2", None,
    ),
    "hellaswag": ("Baking: How to bake. Mix. The cook", 0, ("stirs. Well.", "runs.", "sings.", "sleeps.")),
    "ifeval": ("No commas.", None, None),
    "mmlu": (
        f"{ABOUT} anatomy.\n\n"
        + "Which?\nA. w\nB. x\nC. y\nD. z\nAnswer: C\n\n" * 5
        + "What is it?\nA. w\nB. x\nC. y\nD. z\nAnswer:",
        2,
        ("A", "B", "C", "D"),
    ),
    "mmlu-pro": (
        PRO_ABOUT
        + (
            "Question:\nWhence?\nOptions:\nA. so\nB. thus\nAnswer: Let's think step by step. It is thus. "
            "The answer is (B).\n\n"
        ) * 5
        + "Question:\nHow?\nOptions:\nA. so\nB. thus\nAnswer: Let's think step by step.",
        "B",
        None,
    ),
    "mmlu-text": (
        "The following are questions (with answers) about anatomy.\n\nQuestion: What is it?\nAnswer:",
        2,
        ("w", "x", "y", "z"),
    ),
    "winogrande": ("Ann helped Bo because ", 0, ("Ann was kind.", "Bo was kind.")),
}  # fmt: skip


def hub_with(name: str) -> FakeHub:
    """A hub that has the files of one benchmark, five of each row that is a worked example."""
    spec = load_benchmark_file(hub_benchmarks()[name])
    files = {}
    for n, (path, row) in enumerate(FILES[name].items()):
        rows = [row] * (5 if n else 1)
        if path.endswith(".jsonl"):
            files[path] = "".join(json.dumps(row) + "\n" for row in rows).encode()
        else:
            sink = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), sink)
            files[path] = sink.getvalue()
    return FakeHub(files={(str(spec.source.hub), str(spec.source.revision)): files})


def test_they_are_pinned_and_apart_from_what_is_registered_in_one_go() -> None:
    assert hub_benchmarks().keys() == PROMPTS.keys()
    assert not hub_benchmarks().keys() & shipped_benchmarks().keys()
    for path in hub_benchmarks().values():
        spec = load_benchmark_file(path)
        sources = [spec.source, *([spec.few_shot.source] if spec.few_shot and spec.few_shot.source else [])]
        assert all(source.hub and len(str(source.revision)) == 40 for source in sources)


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_a_row_of_the_hub_becomes_its_prompt(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with reached(hub_with(name), monkeypatch, tmp_path / "cache"):
        benchmark = register_benchmark(store, hub_benchmarks()[name], "2026-01-01T00:00:00+00:00")
    (item,) = store.blobs.get_items(benchmark.items_blob)
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    prompt, target, choices = PROMPTS[name]
    assert (render_text(benchmark, item, shots), item.target) == (prompt, target)
    if choices is not None:
        rendering = Rendering(benchmark=name, item_id=item.item_id, fields=item.fields)
        assert render_choices(benchmark.template.choices, rendering) == choices


def test_the_answer_of_mmlu_pro_is_read_as_lm_eval_does(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reached(hub_with("mmlu-pro"), monkeypatch, tmp_path / "cache"):
        benchmark = register_benchmark(store, hub_benchmarks()["mmlu-pro"], "2026-01-01T00:00:00+00:00")
    (item,) = store.blobs.get_items(benchmark.items_blob)
    outputs = {
        " It is thus. The answer is (B).": 1.0, " The answer is B": 1.0, "answer is (A), no, the answer is (B)": 0.0,
        " (B)": 0.0, "Question: the answer is (B)": 0.0,
    }  # fmt: skip
    for output, value in outputs.items():
        response = Response(
            benchmark_id=benchmark.benchmark_id, item_id=item.item_id, status="ok", prompt_digest="", output=output
        )
        (found,) = score(benchmark, item, response)
        assert found.value == value, output


def test_mmlu_s_subjects_have_a_category_each() -> None:
    categories = load_benchmark_file(hub_benchmarks()["mmlu"]).item.categories
    assert {name: len(subjects) for name, subjects in categories.items()} == {
        "stem": 19, "humanities": 13, "social_sciences": 12, "other": 13,
    }  # fmt: skip
