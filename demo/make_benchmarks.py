"""Write the demo's benchmarks: seeded held-out items as Parquet, and the YAML files that pin them by blake3.

`python demo/make_benchmarks.py [--out DIR]` gives the same bytes each time. Items come from the held-out part of the
language, few-shot examples from the part that is trained on. Knows no model.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from blake3 import blake3
from word_problems import SUBJECTS, Problem, choices, draw_problem, question, situation, story, worked_answer

SHIPPED = Path(__file__).resolve().parents[1] / "eval_tasks" / "benchmarks" / "demo"
SEED = 20_261_130
N_CHOICE, N_LOSS, N_GENERATION, N_FEW_SHOT = 360, 200, 120, 4

_TEXT = pa.string()
_SCHEMAS = {
    "demo-choice": pa.schema(
        {"item_id": _TEXT, "subject": _TEXT, "question": _TEXT, "choices": pa.list_(_TEXT), "answer": pa.int64()}
    ),
    "demo-text": pa.schema({"item_id": _TEXT, "subject": _TEXT, "text": _TEXT}),
    "demo-steps": pa.schema({"item_id": _TEXT, "subject": _TEXT, "question": _TEXT, "answer": _TEXT}),
}


def distinct_problems(rng: random.Random, count: int, *, held_out: bool) -> list[Problem]:
    """`count` problems with different texts, the subjects in turn."""
    found: dict[str, Problem] = {}
    while len(found) < count:
        problem = draw_problem(rng, held_out=held_out, subject=SUBJECTS[len(found) % len(SUBJECTS)])
        found.setdefault(situation(problem), problem)
    return list(found.values())


def choice_rows(rng: random.Random, count: int, prefix: str, *, held_out: bool) -> list[dict[str, Any]]:
    """Rows of the multiple-choice benchmark; `answer` is the index of the right choice."""
    rows = []
    for i, problem in enumerate(distinct_problems(rng, count, held_out=held_out)):
        options, answer = choices(problem, rng)
        row = {"item_id": f"{prefix}-{i:03d}", "subject": problem.subject, "question": question(problem)}
        rows.append({**row, "choices": options, "answer": answer})
    return rows


def text_rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows of the held-out text: two stories of one subject each."""
    problems = distinct_problems(rng, 2 * count, held_out=True)
    rows = []
    for i in range(count):
        subject = SUBJECTS[i % len(SUBJECTS)]
        pair = [p for p in problems if p.subject == subject][2 * (i // len(SUBJECTS)) :][:2]
        rows.append({"item_id": f"text-{i:03d}", "subject": subject, "text": " ".join(story(p) for p in pair)})
    return rows


def generation_rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows of the generation benchmark, the gold answer in GSM8K's form."""
    return [
        {"item_id": f"steps-{i:03d}", "subject": p.subject, "question": question(p), "answer": worked_answer(p)}
        for i, p in enumerate(distinct_problems(rng, count, held_out=True))
    ]


def write_parquet(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> str:
    """Write the rows and return the file's blake3. No writer's clock or dictionary choice is left open."""
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, path, compression="zstd", compression_level=3, use_dictionary=False, store_schema=False)
    return blake3(path.read_bytes()).hexdigest()


def _source(name: str, digest: str) -> dict[str, str]:
    return {"uri": f"{name}.parquet", "blake3": digest, "format": "parquet"}


def benchmark_files(digests: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The three benchmark definitions by name, their sources pinned to `digests`."""
    common = {"licence": "Apache-2.0", "decision_grade": True}
    return {
        "demo-text": {
            "name": "demo-text",
            "version": "1",
            "kind": "loss",
            "description": "Held-out stories in the demo's language; sensitive to any change of the model.",
            **common,
            "source": _source("demo-text", digests["demo-text"]),
            "item": {"id": "item_id", "target": None, "stratum": "subject", "cluster": None},
            "prompt": {"item": "{{ text }}", "bos": "auto", "chat": "never"},
            "scorer": {"name": "loss", "parameters": {}},
            "primary_metric": "bits_per_byte",
            "plausible_range": {"bits_per_byte": [0.05, 3.0]},
        },
        "demo-choice": {
            "name": "demo-choice",
            "version": "1",
            "kind": "choice",
            "description": "Held-out word problems with four possible answers; the wrong ones are near misses.",
            **common,
            "source": _source("demo-choice", digests["demo-choice"]),
            "item": {"id": "item_id", "target": "answer", "stratum": "subject", "cluster": None},
            "few_shot": {
                "k": 2,
                "select": "first",
                "match": None,
                "seed": 0,
                "source": _source("demo-choice-few-shot", digests["demo-choice-few-shot"]),
            },
            "prompt": {
                "item": "Q: {{ question }}\nA:",
                "choices": "choices",
                "target": "",
                "target_delimiter": " ",
                "few_shot_delimiter": "\n\n",
                "bos": "auto",
                "chat": "never",
            },
            "scorer": {"name": "choice", "parameters": {}},
            "primary_metric": "acc",
            "chance_level": 0.25,
            "plausible_range": {"acc": [0.1, 1.0]},
        },
        "demo-steps": {
            "name": "demo-steps",
            "version": "2",
            "kind": "generation",
            "description": "Held-out word problems to be worked out in steps, the answer after ####, as in GSM8K.",
            **common,
            "source": _source("demo-steps", digests["demo-steps"]),
            "item": {"id": "item_id", "target": "answer", "stratum": "subject", "cluster": None},
            "prompt": {
                "item": "Question: {{ question }}\nAnswer:",
                "target": "{{ answer }}",
                "bos": "auto",
                "chat": "never",
                "stop": ["\n\n", "Question:"],
            },
            "scorer": {"name": "gsm8k", "parameters": {}},
            "primary_metric": "strict",
            "chance_level": 0.0,
            "plausible_range": {"strict": [0.0, 1.0]},
            "max_tokens": 40,
        },
    }


def other_files() -> dict[str, dict[str, Any]]:
    """The two suites and the decision rule of the demo."""

    def suite(tier: str, version: str, *benchmarks: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"demo-{tier}", "version": version, "tier": tier, "benchmarks": list(benchmarks)}

    text, choice = ({"name": name, "version": "1"} for name in ("demo-text", "demo-choice"))
    steps = {"name": "demo-steps", "version": "2"}
    return {
        "demo-health": suite("health", "1", {**text, "n_items": 80}, {**choice, "n_items": 120, "seed": 0}),
        "demo-selection": suite("selection", "2", text, choice, steps),
        "demo-rule": {
            "name": "demo-rule",
            "kind": "superiority",
            "metric": "acc",
            "components": {"demo-choice": 1.0},
            "alpha": 0.05,
            "margin": 0.0,
            "direction": "higher",
        },
    }


class _Dumper(yaml.SafeDumper):
    """Line breaks stay visible as escapes, short lists on one line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\n" in text else None)


def _represent_list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    flat = not any(isinstance(value, dict) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=flat)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)


def make(out: Path, seed: int = SEED) -> list[Path]:
    """Write every file into `out` and return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "demo-choice": choice_rows(random.Random(seed), N_CHOICE, "choice", held_out=True),
        "demo-choice-few-shot": choice_rows(random.Random(seed + 1), N_FEW_SHOT, "shot", held_out=False),
        "demo-text": text_rows(random.Random(seed + 2), N_LOSS),
        "demo-steps": generation_rows(random.Random(seed + 3), N_GENERATION),
    }
    paths = {name: out / f"{name}.parquet" for name in tables}
    schemas = {**_SCHEMAS, "demo-choice-few-shot": _SCHEMAS["demo-choice"]}
    digests = {name: write_parquet(paths[name], rows, schemas[name]) for name, rows in tables.items()}
    written = list(paths.values())
    for name, content in {**benchmark_files(digests), **other_files()}.items():
        path = out / f"{name}.yaml"
        path.write_text(yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100), "utf-8")
        written.append(path)
    return written


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Generate the demo's benchmarks, suites and decision rule.")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder to write to (default: where they ship)")
    for path in make(parser.parse_args().out):
        print(f"{path.name}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
