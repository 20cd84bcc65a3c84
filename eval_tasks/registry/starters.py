"""A name and a kind -> the text of a new benchmark's YAML file and of its data file, which register as they are.

The comments in the YAML teach: what each field decides, and what to change first. Writes nothing itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.records.benchmark import Kind
from eval_tasks.registry.yaml_file import NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """Two files, to lie beside one another: `yaml` as NAME.yaml, `data` as NAME.jsonl."""

    yaml: str
    data: str


def starter(name: str, kind: Kind) -> Starter:
    """The files of a small benchmark of that kind. Raises UserError for a name that no benchmark may have."""
    if not re.fullmatch(NAME, name):
        raise UserError(
            f"{name!r} cannot name a benchmark: small letters, digits, '.', '_' and '-', at most 63, such as 'my-quiz'"
        )
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _ROWS[kind])
    head = _HEAD.format(name=name, kind=kind, about=_ABOUT[kind], blake3=digest_bytes(data.encode()))
    return Starter(yaml=head + _BODIES[kind], data=data)


_HEAD = """\
# A benchmark: this file and its data. Every field is in docs/benchmarks.md. Register it with
#   python -m eval_tasks benchmarks register {name}.yaml
name: {name}
# What is registered under a version never changes: when you change data, prompt or scorer, write "2".
version: "1"
kind: {kind}  # {about}
description: ""
licence: CC0-1.0  # of the data
# True for a held-out set of your own that decides; false for a public set, which is there for comparability.
decision_grade: false

# One JSON object per line. The digest pins the bytes: after an edit, registering says which digest it found.
source: {{uri: {name}.jsonl, blake3: {blake3}}}
"""

_ABOUT: Mapping[Kind, str] = {
    "choice": "the log-probability of each choice is compared",
    "generation": "an answer is written, greedily, and scored as text",
    "loss": "the text is scored token by token",
}

_BODIES: Mapping[Kind, str] = {
    "choice": """\
item:
  id: item_id  # unique and lasting: pairing, contamination and audits go by it, never by position
  target: answer  # the right choice: its index from 0, its text or its letter
  stratum: topic  # subsets are drawn in proportion to it; null for none

# Worked examples in front of each question. Here they are other rows of the benchmark itself; name a source of its own
# (uri and blake3 as above) to keep examples and questions apart.
few_shot: {k: 1, select: first}

prompt:
  item: "Question: {{ question }}\\nAnswer:"  # Jinja over the columns; no blank at the end
  choices: choices  # a column with a list of texts, or fixed texts such as ["A", "B", "C", "D"]

scorer: {name: choice}  # acc, and acc_norm (per character), which is fairer where choices differ in length
primary_metric: acc
chance_level: 0.25
plausible_range: {acc: [0.0, 1.0]}  # a score outside is quarantined and looked at; narrow it once you know
""",
    "generation": """\
item:
  id: item_id  # unique and lasting: pairing, contamination and audits go by it, never by position
  target: answer  # a list would hold several references of which any will do
  stratum: topic  # subsets are drawn in proportion to it; null for none

# Worked examples in front of each question. Here they are other rows of the benchmark itself; name a source of its own
# (uri and blake3 as above) to keep examples and questions apart.
few_shot: {k: 1, select: first}

prompt:
  item: "Question: {{ question }}\\nAnswer:"  # Jinja over the columns; no blank at the end
  target: "{{ answer if answer is string else answer[0] }}"  # the answer of a worked example
  stop: ["\\n"]  # the output ends before the first of these
max_tokens: 32

# Others: numeric (with a tolerance), regex (patterns as targets), gsm8k, ifeval.
scorer: {name: exact_match, parameters: {ignore_case: true, ignore_punctuation: true}}
primary_metric: exact_match
plausible_range: {exact_match: [0.0, 1.0]}  # a score outside is quarantined and looked at; narrow it once you know
""",
    "loss": """\
item:
  id: item_id  # unique and lasting: pairing, contamination and audits go by it, never by position
  stratum: topic  # subsets are drawn in proportion to it; null for none

prompt:
  item: "{{ text }}"  # the text that is scored, whole

scorer: {name: loss}  # bits_per_byte does not depend on the tokenizer; bits_per_token does
primary_metric: bits_per_byte
plausible_range: {bits_per_byte: [0.05, 3.0]}  # a score outside is quarantined and looked at
""",
}

_ROWS: Mapping[Kind, Sequence[Mapping[str, Any]]] = {
    "choice": [
        {"item_id": "sky", "topic": "nature", "question": "What colour is a clear sky at noon?",
         "choices": ["green", "blue", "black", "red"], "answer": 1},
        {"item_id": "spider", "topic": "nature", "question": "How many legs has a spider?",
         "choices": ["eight", "six", "four", "ten"], "answer": 0},
        {"item_id": "noon", "topic": "clock", "question": "Which hour comes after noon?",
         "choices": ["nine", "six", "ten", "one"], "answer": 3},
        {"item_id": "half", "topic": "clock", "question": "How many minutes are half an hour?",
         "choices": ["ten", "sixty", "thirty", "five"], "answer": 2},
    ],
    "generation": [
        {"item_id": "sky", "topic": "nature", "question": "What colour is a clear sky at noon?", "answer": "Blue"},
        {"item_id": "spider", "topic": "nature", "question": "How many legs has a spider?", "answer": ["8", "eight"]},
        {"item_id": "noon", "topic": "clock", "question": "Which hour comes after noon?", "answer": ["1", "one"]},
        {"item_id": "half", "topic": "clock", "question": "How many minutes are half an hour?",
         "answer": ["30", "thirty"]},
    ],
    "loss": [
        {"item_id": "rain", "topic": "weather", "text": "It rained all morning, and the brook left its bed."},
        {"item_id": "snow", "topic": "weather", "text": "Snow fell on the hills first; the valley saw none."},
        {"item_id": "bread", "topic": "kitchen", "text": "Knead the dough, let it rise for an hour, and bake it hot."},
    ],
}  # fmt: skip
