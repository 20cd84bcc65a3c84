"""A byte-level tokenizer of our own, with merges that cross blanks and choices, and a benchmark to vary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from eval_tasks.records import BenchmarkVersion, DataSource, Item, PromptTemplate, ScorerRef
from eval_tasks.tokenization import Tokenizer, load_tokenizer

MERGES = [("Ġ", "A"), ("y", "z"), ("o", "n"), ("on", "e")]
CHAT = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def make_tokenizer(tmp_path: Path) -> Callable[..., Tokenizer]:
    """Ids: <s> 0, </s> 1, then the 256 bytes, then the merges. Every character of ASCII is one token but for merges."""

    def make(*, adds_bos: bool = True, chat: str | None = None, special: bool = True) -> Tokenizer:
        tokens = [*(["<s>", "</s>"] if special else []), *sorted(pre_tokenizers.ByteLevel.alphabet())]
        vocab = {token: n for n, token in enumerate([*tokens, *("".join(pair) for pair in MERGES)])}
        backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=MERGES))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        config: dict[str, Any] = {"chat_template": chat}
        if special:
            backend.add_special_tokens(["<s>", "</s>"])
            config.update(bos_token="<s>", eos_token="</s>")
        if adds_bos and special:
            backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        backend.save(str(tmp_path / "tokenizer.json"))
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        return load_tokenizer(tmp_path)

    return make


@pytest.fixture
def make_benchmark() -> Callable[..., BenchmarkVersion]:
    """A benchmark whose template and other fields are given."""

    def make(template: PromptTemplate, **changes: Any) -> BenchmarkVersion:
        fields: dict[str, Any] = {
            "name": "toy",
            "version": "1",
            "kind": "choice" if template.choices else "generation",
            "items_digest": "i",
            "template_digest": "t",
            "scorer_digest": "s",
            "n_items": 1,
            "items_blob": "b",
            "few_shot_blob": None,
            "few_shot": None,
            "scorer": ScorerRef(name="choice", version="1"),
            "primary_metric": "acc",
            "licence": "MIT",
            "source": DataSource(uri="x"),
            "created_at": "2026-01-01T00:00:00Z",
            "max_tokens": 8,
        }
        return BenchmarkVersion(**{**fields, "template": template, **changes})

    return make


@pytest.fixture
def make_item() -> Callable[..., Item]:
    """An item from its fields."""

    def make(item_id: str = "i", target: Any = None, **fields: Any) -> Item:
        return Item(item_id=item_id, fields=fields, target=target)

    return make
