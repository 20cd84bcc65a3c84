"""Rows in the form of MMLU, GSM8K, IFEval and long documents, as our benchmark files and as lm-eval's task files.

The rows are those of the golden folder where it is given, and made from a seed otherwise: the shapes (lengths, shared
examples, stop strings) are the same, the words mean nothing.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from eval_tasks.datasets import Dataset, load_dataset
from eval_tasks.digests import digest_bytes
from eval_tasks.prompts import build_requests
from eval_tasks.records import BenchmarkVersion, EngineConfig, Request
from eval_tasks.register import register_benchmark
from eval_tasks.registry import load_benchmark_file
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from eval_tasks.tokenization import load_tokenizer

_NOW = "2026-01-01T00:00:00+00:00"
_LETTERS = ("A", "B", "C", "D")
_WORDS = (
    *(
        "river",
        "stone",
        "seven",
        "market",
        "garden",
        "window",
        "letter",
        "paper",
        "winter",
        "number",
        "copper",
        "engine",
    ),
    *("forest", "island", "matter", "simple", "story", "theory", "valley", "yellow", "around", "before", "carries"),
    *("divides", "every", "further", "given", "however", "inside", "joined", "known", "less"),
)
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedTask:
    """One task: its rows, and what our benchmark file (`ours`) and lm-eval's task file (`theirs`) say of them.

    `their_file`: the task file of lm-eval's own wheel that theirs includes, so that its filters and scores are its own.
    """

    name: str
    rows: Rows
    ours: dict[str, Any]
    theirs: dict[str, Any] = field(default_factory=dict)
    example_rows: Rows = field(default_factory=list)
    n_examples: int = 0
    their_file: str = ""

    def write(self, folder: Path, their_tasks: Path | None = None) -> tuple[Path, Path]:
        """Data and both files under `folder`: (our YAML, the folder with lm-eval's). `their_tasks`: as in its wheel."""
        (folder / "theirs").mkdir(parents=True, exist_ok=True)
        test = _write_rows(folder / f"{self.name}.jsonl", self.rows)
        ours = {"name": self.name, "version": "1", "licence": "MIT", "source": _pinned(test), **self.ours}
        examples_are = ours.pop("few_shot", {})
        theirs = {"task": self.name, "dataset_path": "json", "dataset_name": None, "test_split": "test", **self.theirs}
        if their_tasks and self.their_file:
            theirs = {"include": str(their_tasks / self.their_file), **theirs}
        files = {"test": str(test)}
        if self.n_examples:
            examples = _write_rows(folder / f"{self.name}-examples.jsonl", self.example_rows)
            ours["few_shot"] = {"k": self.n_examples, "source": _pinned(examples), **examples_are}
            files["dev"] = str(examples)
            theirs |= {"fewshot_split": "dev", "fewshot_config": {"sampler": "first_n"}}
        else:
            theirs |= {"fewshot_split": None, "training_split": None}
        theirs["dataset_kwargs"] = {"data_files": files}
        (folder / "theirs" / f"{self.name}.yaml").write_text(yaml.safe_dump(theirs), "utf-8")
        path = folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(ours), "utf-8")
        return path, folder / "theirs"

    def registered(self, folder: Path) -> tuple[BenchmarkVersion, Dataset]:
        """Our benchmark and its data; files are written to `folder`."""
        path, _ = self.write(folder)
        with open_store(Settings(home=folder / "home")) as store:
            benchmark = register_benchmark(store, path, _NOW)
        return benchmark, load_dataset(load_benchmark_file(path), folder)

    def requests(self, folder: Path, model: Path, config: EngineConfig, max_context: int) -> list[Request]:
        """What our engine is asked, for the tokenizer of `model`; files are written to `folder`."""
        benchmark, dataset = self.registered(folder)
        tokenizer = load_tokenizer(model)
        return build_requests(benchmark, dataset.items, dataset.few_shot, tokenizer, config, max_context)


def mmlu(golden: Path | None, *, n_subjects: int, n_items: int, n_examples: int = 5) -> ShapedTask:
    """`n_items` of each of so many subjects, with up to five examples. lm-eval's file is right for one subject only."""
    if golden is None:
        made = _Maker(1)
        rows = [made.question(f"subject_{s:02d}", i) for s in range(n_subjects) for i in range(n_items)]
        examples = [made.question(f"subject_{s:02d}", i) for s in range(n_subjects) for i in range(5)]
    else:
        everything, examples = _read(golden / "mmlu/test.jsonl.gz"), _read(golden / "mmlu/dev.jsonl.gz")
        subjects = sorted({row["subject"] for row in everything})
        chosen = subjects[:: len(subjects) // n_subjects][:n_subjects]
        rows = [row for s in chosen for row in everything if row["subject"] == s and row["index"] < n_items]
        examples = [row for row in examples if row["subject"] in chosen]
    text = "{{ question | trim }}\nA. {{ choices[0] }}\nB. {{ choices[1] }}\nC. {{ choices[2] }}\nD. {{ choices[3] }}"
    about = "The following are multiple choice questions (with answers) about {{ subject | replace('_', ' ') }}.\n\n"
    return ShapedTask(
        name="mmlu-shaped",
        rows=rows,
        example_rows=examples,
        n_examples=n_examples,
        ours={
            "kind": "choice",
            "item": {"id": ["subject", "index"], "target": "answer", "stratum": "subject"},
            "few_shot": {"select": "first", "match": "subject"},
            "prompt": {"description": about, "item": f"{text}\nAnswer:", "choices": list(_LETTERS)},
            "scorer": {"name": "choice"},
            "primary_metric": "acc",
        },
        theirs={
            "output_type": "multiple_choice",
            "description": about,
            "doc_to_text": f"{text}\nAnswer:",
            "doc_to_choice": list(_LETTERS),
            "doc_to_target": "answer",
            "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
        },
    )


def gsm8k(
    golden: Path | None, *, n_items: int, n_examples: int = 5, select: str = "first", max_tokens: int = 256
) -> ShapedTask:
    """Worked examples: the first ones for all, as in `theirs`, or drawn for each item (``seeded``)."""
    if golden is None:
        made = _Maker(2)
        rows, examples = ([made.sum(i) for i in range(n)] for n in (n_items, 64))
    else:
        rows = _read(golden / "gsm8k/test.jsonl")[:n_items]
        examples = _read(golden / "gsm8k/train.jsonl.gz")[:64]
    stop = ["Question:", "</s>", "<|im_end|>"]
    return ShapedTask(
        name="gsm8k-shaped",
        rows=[{**row, "row": i} for i, row in enumerate(rows)],
        example_rows=[{**row, "row": len(rows) + i} for i, row in enumerate(examples)],
        n_examples=n_examples,
        ours={
            "kind": "generation",
            "item": {"id": "row", "target": "answer"},
            "few_shot": {"select": select},
            "prompt": {"item": "Question: {{ question }}\nAnswer:", "target": "{{ answer }}", "stop": stop},
            "scorer": {"name": "gsm8k"},
            "primary_metric": "flexible",
            "max_tokens": max_tokens,
        },
        theirs={
            "output_type": "generate_until",
            "doc_to_text": "Question: {{ question }}\nAnswer:",
            "doc_to_target": "{{ answer }}",
            "generation_kwargs": {"until": stop, "do_sample": False, "max_gen_toks": max_tokens},
        },
        their_file="gsm8k/gsm8k.yaml",
    )


def ifeval(golden: Path | None, *, n_items: int, max_tokens: int = 256) -> ShapedTask:
    """A prompt and no stop string: outputs are as long as they may be, unless the model ends them."""
    if golden is None:
        made = _Maker(3)
        rows = [made.instruction(i) for i in range(n_items)]
    else:
        rows = _read(golden / "ifeval/input_data.jsonl")[:n_items]
    return ShapedTask(
        name="ifeval-shaped",
        rows=rows,
        ours={
            "kind": "generation",
            "item": {"id": "key"},
            "prompt": {"item": "{{ prompt }}"},
            "scorer": {"name": "ifeval"},
            "primary_metric": "prompt_strict",
            "max_tokens": max_tokens,
        },
        theirs={
            "output_type": "generate_until",
            "doc_to_text": "{{ prompt }}",
            "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": max_tokens},
        },
        their_file="ifeval/ifeval.yaml",
    )


def documents(golden: Path | None, *, n_items: int) -> ShapedTask:
    """Running text, of 3,000 to 7,000 characters each."""
    draw = random.Random(4)
    text = _Maker(5).words(40_000) if golden is None else _corpora(golden)
    rows = []
    for i in range(n_items):
        n = draw.randrange(3000, 7000)
        start = draw.randrange(len(text) - n)
        rows.append({"row": i, "text": text[start : start + n]})
    return ShapedTask(
        name="documents",
        rows=rows,
        ours={
            "kind": "loss",
            "item": {"id": "row"},
            "prompt": {"item": "{{ text }}"},
            "scorer": {"name": "loss"},
            "primary_metric": "bits_per_byte",
        },
    )


def running_text(golden: Path | None) -> Sequence[str]:
    """Text to train a tokenizer on, so that real items have realistic lengths."""
    if golden is None:
        return [json.dumps(row) for task in (mmlu(None, n_subjects=4, n_items=64),) for row in task.rows]
    questions = ("\n".join((row["question"], *row["choices"])) for row in _read(golden / "mmlu/test.jsonl.gz"))
    sums = (f"{row['question']}\n{row['answer']}" for row in _read(golden / "gsm8k/train.jsonl.gz"))
    return [*questions, *sums, *_corpora(golden).splitlines()]


class _Maker:
    """Rows of seeded words."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def words(self, n: int) -> str:
        return " ".join(self._draw.choice(_WORDS) for _ in range(n))

    def question(self, subject: str, index: int) -> dict[str, Any]:
        draw = self._draw
        choices = [self.words(draw.randrange(1, 14)) for _ in _LETTERS]
        question = self.words(draw.randrange(12, 90)).capitalize() + "?"
        return {
            "subject": subject,
            "index": index,
            "question": question,
            "choices": choices,
            "answer": draw.choice("ABCD"),
        }

    def sum(self, index: int) -> dict[str, Any]:
        draw = self._draw
        a, b = draw.randrange(2, 99), draw.randrange(2, 99)
        question = f"{self.words(draw.randrange(25, 60))} {a} and {b}: how many {draw.choice(_WORDS)}?"
        return {"question": question, "answer": f"{self.words(30)} {a} + {b} = {a + b}\n#### {a + b}"}

    def instruction(self, index: int) -> dict[str, Any]:
        prompt = f"Write about {self.words(self._draw.randrange(8, 60))}. Do not use any commas."
        return {"key": index, "prompt": prompt, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}


def _corpora(golden: Path) -> str:
    return "\n".join(path.read_text("utf-8", errors="replace") for path in sorted((golden / "corpora").glob("*.txt")))


def _read(path: Path) -> Rows:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.splitlines()]


def _write_rows(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _pinned(path: Path) -> dict[str, str]:
    return {"uri": path.name, "blake3": digest_bytes(path.read_bytes()), "format": "jsonl"}
