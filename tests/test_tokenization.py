from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from eval_tasks.errors import CheckpointError, UserError
from eval_tasks.tokenization import load_tokenizer

TEMPLATE = """{%- for message in messages %}
    {%- if message['role'] == 'tool' %}{{ raise_exception('no tools') }}{% endif %}
{{ '<|' + message.role + '|>' }}
{{ message.content | trim }}{{ eos_token }}
{% endfor %}
{%- if add_generation_prompt %}
<|assistant|>{{ {'a': '<é>'} | tojson }}
{%- endif %}"""


def _write(folder: Path, *, bos: bool = True, config: dict[str, Any] | None = None, **files: dict[str, Any]) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<s>", "</s>", "<pad>", *alphabet, "th", "the"])}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[("t", "h"), ("th", "e")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>", "<pad>"])
    if bos:
        backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    backend.enable_truncation(4)
    backend.enable_padding(length=16, pad_id=2, pad_token="<pad>")
    folder.mkdir(exist_ok=True)
    backend.save(str(folder / "tokenizer.json"))
    tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**tokenizer_config, **(config or {})}))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.golden
@pytest.mark.parametrize("model", ["stories260K-hf", "babyllama105-hf"])
def test_golden_models_encode_and_decode_like_transformers(golden: Path, model: str) -> None:
    transformers = pytest.importorskip("transformers")
    folder = golden / "models" / model
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder)
    texts = ["Once upon a time", " leading", "two  blanks\n\nand lines ", "", "naïve Ω 🙂", "<s>Once</s>", "A. B: C"]
    for text in texts:
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
        assert ours.decode(ids, skip_special_tokens=False) == theirs.decode(ids)
    assert ours.encode_batch(texts) == [ours.encode(text) for text in texts]
    assert (ours.bos_id, ours.eos_ids) == (theirs.bos_token_id, (theirs.eos_token_id,))
    assert ours.adds_bos and theirs("x")["input_ids"][0] == ours.bos_id
    assert ours.vocab_size == len(theirs)


def test_small_tokenizer_and_chat_like_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = _write(tmp_path / "t", config={"chat_template": TEMPLATE, "pad_token": "<pad>"})
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder)
    for text in ["the end of the thing", "<s>the", "é🙂"]:
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]
    messages = [{"role": "system", "content": " be brief "}, {"role": "user", "content": "<b> & é"}]
    for prompt in (True, False):
        expected = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
        assert ours.apply_chat(messages, add_generation_prompt=prompt) == expected
    assert (ours.bos_id, ours.eos_ids, ours.pad_id, ours.adds_bos) == (0, (1,), 2, True)


def test_encode_adds_nothing_and_neither_truncates_nor_pads(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(_write(tmp_path))
    the = tokenizer.encode("the")
    assert len(the) == 1
    assert tokenizer.encode("the" * 40) == the * 40
    assert [len(ids) for ids in tokenizer.encode_batch(["the", "the" * 40, ""])] == [1, 40, 0]


def test_eos_is_the_sorted_union_of_all_files(tmp_path: Path) -> None:
    folder = _write(tmp_path, config={"eos_token": {"content": "</s>"}}, generation_config={"eos_token_id": [9, 5]})
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 7, "text_config": {"eos_token_id": 3}}))
    assert load_tokenizer(folder).eos_ids == (1, 3, 5, 7, 9)


def test_special_tokens_come_from_the_map_and_the_model_config_when_the_tokenizer_names_none(tmp_path: Path) -> None:
    folder = _write(tmp_path, special_tokens_map={"pad_token": "<pad>", "bos_token": "</s>"})
    assert (load_tokenizer(folder).pad_id, load_tokenizer(folder).bos_id) == (2, 0)
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": None}))
    (folder / "config.json").write_text(json.dumps({"bos_token_id": 4}))
    assert load_tokenizer(folder).bos_id == 4


@pytest.mark.parametrize(
    ("post_processor", "declared", "expected"),
    [(True, None, True), (False, None, False), (False, True, True), (False, False, False)],
)
def test_adds_bos(tmp_path: Path, post_processor: bool, declared: bool | None, expected: bool) -> None:
    config = {} if declared is None else {"add_bos_token": declared}
    assert load_tokenizer(_write(tmp_path, bos=post_processor, config=config)).adds_bos is expected


def test_lone_surrogates_do_not_end_a_run(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(_write(tmp_path))
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


def test_template_file_wins_and_the_date_never_moves(tmp_path: Path) -> None:
    folder = _write(tmp_path, config={"chat_template": "old"})
    before = load_tokenizer(folder).digest
    (folder / "chat_template.jinja").write_text("{% generation %}{{ strftime_now('%d %b %Y') }}{% endgeneration %}")
    tokenizer = load_tokenizer(folder)
    assert tokenizer.apply_chat([]) == "26 Jul 2024"
    assert tokenizer.digest != before


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    assert load_tokenizer(_write(tmp_path, config={"chat_template": several})).apply_chat([]) == "plain"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ none | xmlattr }}", "chat template failed: 'NoneType' object has no attribute"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% if %}", "line 1"),
    ],
)
def test_a_chat_template_that_fails_or_breaks_out_is_an_error(tmp_path: Path, template: str, message: str) -> None:
    tokenizer = load_tokenizer(_write(tmp_path, config={"chat_template": template}))
    with pytest.raises(UserError, match=message):
        tokenizer.apply_chat([{"role": "user", "content": "x"}])


def test_no_chat_template_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="chat: never"):
        load_tokenizer(_write(tmp_path)).apply_chat([])


def test_named_reasons(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no tokenizer\.json") as missing:
        load_tokenizer(tmp_path)
    assert missing.value.reason == "no_fast_tokenizer"
    folder = _write(tmp_path, config={"eos_token": "<|end|>"})
    with pytest.raises(CheckpointError, match=r"'<\|end\|>'") as unknown:
        load_tokenizer(folder)
    assert unknown.value.reason == "bad_tokenizer"
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(CheckpointError, match="not readable as JSON"):
        load_tokenizer(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is not a tokenizer"):
        load_tokenizer(folder)
