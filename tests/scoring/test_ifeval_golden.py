"""The recorded verdicts of eight models and of GPT-4, all of them, against ours: they agree but for the listed keys."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.records import Score

ScoreOne = Callable[..., dict[str, Score]]
Verdicts = dict[str, list[bool]]

# The differences are of four kinds, and only these may occur.
# CAPITAL, LOWER: the reference asks a language detector without a seed, which said "not English"; we judge the case.
# LETTER: it counts a random letter where the item asks for "#" (key 1122) or "!" (key 1129); we count the character.
# SENTENCES: its Punkt data was another release.
CAPITAL, LOWER = "change_case:english_capital", "change_case:english_lowercase"
LETTER, SENTENCES = "keywords:letter_frequency", "length_constraints:number_sentences"

DIFFERENCES = {
    "CohereForAI__aya-23-8B": {
        CAPITAL: {"strict": [], "loose": [3456]},
        LOWER: {"strict": [202], "loose": [202]},
        LETTER: {"strict": [1122], "loose": []},
    },
    "Qwen__Qwen2.5-0.5B-Instruct-GPTQ-Int4": {
        CAPITAL: {"strict": [3572], "loose": [3572]},
        LOWER: {"strict": [218], "loose": [218, 2943]},
        LETTER: {"strict": [1122, 1129], "loose": [1122, 1129]},
    },
    "Qwen__Qwen2.5-7B-Instruct-GPTQ-Int4": {
        CAPITAL: {"strict": [1389, 3456, 3572, 3617], "loose": [1389, 3572, 3617]},
        LOWER: {"strict": [202, 296, 1843], "loose": [202, 296, 1843]},
        LETTER: {"strict": [1122, 1129], "loose": []},
    },
    "claude-3-haiku-20240307": {
        CAPITAL: {"strict": [3456], "loose": [3456]},
        LOWER: {"strict": [202, 1843, 3608], "loose": [202, 1843, 3608]},
    },
    "deepseek-ai__deepseek-llm-7b-chat": {
        CAPITAL: {"strict": [1389], "loose": [1389, 2736]},
        LOWER: {"strict": [202, 2100], "loose": [202, 2100]},
        LETTER: {"strict": [1122, 1129], "loose": []},
    },
    "gpt-4o-mini-2024-07-18": {
        LOWER: {"strict": [202], "loose": []},
        LETTER: {"strict": [], "loose": [1122]},
        SENTENCES: {"strict": [3089, 3429, 3534], "loose": [3089, 3429]},
    },
    "gpt4": {
        CAPITAL: {"strict": [2341, 2571, 3456], "loose": [2341, 2571, 3456]},
        LOWER: {"strict": [202, 1843], "loose": [202, 1843]},
        LETTER: {"strict": [], "loose": [1122]},
    },
    "mistralai__Mistral-7B-Instruct-v0.3": {
        LETTER: {"strict": [], "loose": [1122]},
    },
    "o1-mini-2024-09-12": {
        CAPITAL: {"strict": [3456], "loose": [3456, 3617]},
        LOWER: {"strict": [1843], "loose": [1843]},
        LETTER: {"strict": [], "loose": [1129]},
    },
}

MODELS = sorted(set(DIFFERENCES) - {"gpt4"})


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def differences(
    score_one: ScoreOne, rows: Iterator[tuple[dict[str, Any], str, Verdicts]]
) -> tuple[dict[str, dict[str, list[int]]], int]:
    """Keys whose verdict differs, by instruction and level, and the number of verdicts held against ours."""
    found: dict[str, dict[str, list[int]]] = {}
    n = 0
    for prompt, response, recorded in rows:
        ids = [name.removeprefix("en:") for name in prompt["instruction_id_list"]]
        fields = {"instruction_id_list": ids, "kwargs": prompt["kwargs"]}
        scores = score_one("ifeval", fields=fields, output=response)
        for level, theirs in recorded.items():
            detail = scores[f"prompt_{level}"].detail
            ours = json.loads(detail) if detail else [None] * len(ids)
            for name, own, other in zip(ids, ours, theirs, strict=True):
                n += own is not None
                if own is not None and own != other:
                    found.setdefault(name, {"strict": [], "loose": []})[level].append(prompt["key"])
    return {name: {level: sorted(keys) for level, keys in levels.items()} for name, levels in found.items()}, n


@pytest.mark.golden
@pytest.mark.parametrize("model", MODELS)
def test_every_recorded_verdict_of_a_model_agrees(golden: Path, score_one: ScoreOne, model: str) -> None:
    prompts = {row["key"]: row for row in rows_of(golden / "ifeval/recorded/en_input_data.jsonl")}
    rows = rows_of(golden / f"ifeval/recorded/{model}.jsonl.gz")
    cases = (
        (prompts[row["key"]], row["response"] or "", {"strict": row["strict"], "loose": row["loose"]}) for row in rows
    )
    found, n = differences(score_one, cases)
    assert found == DIFFERENCES[model]
    assert n == 1606


@pytest.mark.golden
def test_every_recorded_verdict_of_gpt4_agrees(golden: Path, score_one: ScoreOne) -> None:
    folder = golden / "ifeval/google_gpt4"
    prompts = {row["prompt"]: row for row in rows_of(golden / "ifeval/input_data.jsonl")}
    levels = {level: list(rows_of(folder / f"eval_results_{level}.jsonl.gz")) for level in ("strict", "loose")}
    cases = (
        (
            prompts[strict["prompt"]],
            strict["response"],
            {"strict": strict["follow_instruction_list"], "loose": loose["follow_instruction_list"]},
        )
        for strict, loose in zip(levels["strict"], levels["loose"], strict=True)
    )
    found, n = differences(score_one, cases)
    assert found == DIFFERENCES["gpt4"]
    assert n > 1600


def test_only_the_known_kinds_of_difference_are_listed() -> None:
    for listed in DIFFERENCES.values():
        assert set(listed) <= {CAPITAL, LOWER, LETTER, SENTENCES}
        assert {key for keys in listed.get(LETTER, {}).values() for key in keys} <= {1122, 1129}
    n_sentences = sum(len(keys) for listed in DIFFERENCES.values() for keys in listed.get(SENTENCES, {}).values())
    assert n_sentences == 5
