"""Real MMLU, GSM8K and IFEval rows on disk -> benchmark, suite and rule files, as a user would write them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from eval_tasks.digests import digest_bytes

MMLU = {
    "kind": "choice",
    "description": "MMLU, 5-shot, in the format of lm-evaluation-harness 0.4.9.",
    "licence": "MIT",
    # Items go in the order of their ids: a subject's items lie together, and share their five examples' forward pass.
    "item": {"id": ["subject", "index"], "target": "answer", "stratum": "subject", "cluster": None},
    "prompt": {
        "description": "The following are multiple choice questions (with answers) about "
        "{{ subject | replace('_', ' ') }}.\n\n",
        "item": "{{ question | trim }}\nA. {{ choices[0] }}\nB. {{ choices[1] }}\nC. {{ choices[2] }}\n"
        "D. {{ choices[3] }}\nAnswer:",
        "choices": ["A", "B", "C", "D"],
    },
    "scorer": {"name": "choice"},
    "primary_metric": "acc",
    "chance_level": 0.25,
    "plausible_range": {"acc": [0.15, 0.95]},
}
GSM8K = {
    "kind": "generation",
    "description": "GSM8K, no examples, chat template.",
    "licence": "MIT",
    "item": {"id": None, "target": "answer", "stratum": None, "cluster": None},
    "prompt": {
        "item": "Question: {{ question }}\nThink step by step and end with a line '#### ' and the number.\nAnswer:",
        "chat": "always",
        "stop": ["Question:"],
    },
    "scorer": {"name": "gsm8k"},
    "primary_metric": "flexible",
    "plausible_range": {"flexible": [0.0, 1.0]},
    "max_tokens": 256,
}
GSM8K_TEXT = {
    "kind": "loss",
    "description": "Text of GSM8K's questions and worked answers.",
    "licence": "MIT",
    "item": {"id": None, "target": None, "stratum": None, "cluster": None},
    "prompt": {"item": "{{ question }}\n{{ answer }}"},
    "scorer": {"name": "loss"},
    "primary_metric": "bits_per_byte",
    "plausible_range": {"bits_per_byte": [0.1, 3.0]},
}
IFEVAL = {
    "kind": "generation",
    "description": "IFEval, chat template; outputs are cut at 384 tokens, which is less than the usual 1,280.",
    "licence": "Apache-2.0",
    "item": {"id": "key", "target": None, "stratum": None, "cluster": None},
    "prompt": {"item": "{{ prompt }}", "chat": "always"},
    "scorer": {"name": "ifeval"},
    "primary_metric": "prompt_strict",
    "plausible_range": {"prompt_strict": [0.0, 1.0]},
    "max_tokens": 384,
}


def write_benchmarks(data: Path, folder: Path, *, n_mmlu: int, n_generated: int) -> dict[str, list[Path]]:
    """Benchmark, suite and rule YAML under `folder`; returns their paths by group."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = {
        "mmlu": _unpacked(data / "mmlu" / "test.jsonl.gz", folder / "mmlu-test.jsonl"),
        "dev": _unpacked(data / "mmlu" / "dev.jsonl.gz", folder / "mmlu-dev.jsonl"),
        "gsm8k": _copied(data / "gsm8k" / "test.jsonl", folder / "gsm8k-test.jsonl"),
        "ifeval": _copied(data / "ifeval" / "input_data.jsonl", folder / "ifeval.jsonl"),
    }
    shots = {"k": 5, "select": "first", "match": "subject", "source": sources["dev"]}
    benchmarks = [
        _write(folder, {"name": "mmlu", "source": sources["mmlu"], "few_shot": shots, **MMLU}),
        _write(folder, {"name": "gsm8k", "source": sources["gsm8k"], **GSM8K}),
        _write(folder, {"name": "gsm8k-text", "source": sources["gsm8k"], **GSM8K_TEXT}),
        _write(folder, {"name": "ifeval", "source": sources["ifeval"], **IFEVAL}),
    ]
    health = [{"name": "gsm8k-text", "n_items": 64}, {"name": "mmlu", "n_items": n_mmlu // 2}]
    selection = [
        {"name": "mmlu", "n_items": n_mmlu},
        {"name": "gsm8k-text", "n_items": 128},
        {"name": "gsm8k", "n_items": n_generated},
        {"name": "ifeval", "n_items": n_generated},
    ]
    suites = [
        _write(folder, {"name": "real-health", "tier": "health", "benchmarks": health}),
        _write(folder, {"name": "real-selection", "tier": "selection", "benchmarks": selection}),
    ]
    rule = {
        "name": "real-rule",
        "kind": "superiority",
        "metric": "acc",
        "components": {"mmlu": 1.0},
        "alpha": 0.05,
        "direction": "higher",
    }
    return {"benchmarks": benchmarks, "suites": suites, "rules": [_write(folder, rule, versioned=False)]}


def _write(folder: Path, content: Mapping[str, Any], *, versioned: bool = True) -> Path:
    path = folder / f"{content['name']}.yaml"
    document = {"name": content["name"], **({"version": "1"} if versioned else {}), **content}
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def _unpacked(source: Path, target: Path) -> dict[str, str]:
    with gzip.open(source, "rb") as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return _pinned(target)


def _copied(source: Path, target: Path) -> dict[str, str]:
    shutil.copyfile(source, target)
    return _pinned(target)


def _pinned(file: Path) -> dict[str, str]:
    json.loads(file.read_text("utf-8").splitlines()[0])
    return {"uri": file.name, "blake3": digest_bytes(file.read_bytes()), "format": "jsonl"}
