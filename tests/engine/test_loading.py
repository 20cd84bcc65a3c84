"""Checkpoints that must not be evaluated are refused by name, also where transformers would only warn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from eval_tasks.engine import load_engine
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig

Change = Callable[[Path], None]


def _weights(change: Callable[[dict[str, Any]], Any]) -> Change:
    def apply(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return apply


def _config(**values: Any) -> Change:
    def apply(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **values}))

    return apply


def _pickles_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _torn(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def _more_tokens(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = {"id": 259, "content": "<extra>", "single_word": False, "lstrip": False, "rstrip": False}
    tokenizer["added_tokens"].append({**added, "normalized": False, "special": True})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def _other_head(weights: dict[str, Any]) -> None:
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"] * 2


def _drop_half(weights: dict[str, Any]) -> None:
    for name in [name for name in weights if "layers" in name]:
        del weights[name]


@pytest.mark.parametrize(
    ("tied", "change", "reason"),
    [
        (True, _weights(lambda w: w.pop("model.layers.1.mlp.up_proj.weight")), "missing_weights"),
        (True, _weights(_drop_half), "newly_initialised_weights"),
        (True, _weights(lambda w: w.update(extra=w["model.norm.weight"].clone())), "unexpected_weights"),
        (True, _config(num_hidden_layers=1), "unexpected_weights"),
        (True, _config(intermediate_size=160), "shape_mismatch"),
        (False, _weights(lambda w: w.pop("lm_head.weight")), "untied_head_missing"),
        (True, _weights(_other_head), "tied_head_differs"),
        (True, _more_tokens, "embedding_too_small"),
        (True, _pickles_only, "no_weights"),
        (True, _torn, "unreadable_weights"),
        (True, _config(model_type="llamb"), "unsupported_architecture"),
        (True, _config(quantization_config={"quant_method": "gptq"}), "quantized_unsupported"),
        (True, lambda folder: (folder / "tokenizer.json").unlink(), "no_fast_tokenizer"),
        (True, lambda folder: (folder / "config.json").unlink(), "no_config"),
    ],
)
def test_a_wrong_checkpoint_is_refused_by_name(build, tmp_path, tied: bool, change: Change, reason: str) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(build("llama", tie_word_embeddings=tied), folder)
    change(folder)
    with pytest.raises(CheckpointError) as caught:
        load_engine(folder, EngineConfig())
    assert caught.value.reason == reason


def test_what_was_copied_unchanged_loads(build, tmp_path) -> None:
    """The counterpart of the refusals: the copy itself is not what is wrong."""
    shutil.copytree(build("llama", tie_word_embeddings=True), tmp_path / "checkpoint")
    assert load_engine(tmp_path / "checkpoint", EngineConfig()).context == 200


def test_a_checkpoint_in_shards_gives_the_same_rows(build, tmp_path, ask) -> None:
    import transformers

    source = build("llama")
    shutil.copytree(source, tmp_path / "sharded", ignore=shutil.ignore_patterns("*.safetensors"))
    model = transformers.AutoModelForCausalLM.from_pretrained(source)
    model.save_pretrained(tmp_path / "sharded", max_shard_size="100KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
    request = ask("choice", range(3, 80), continuations=((4,), (5, 6)))
    (whole,) = load_engine(source, EngineConfig()).respond([request])
    (sharded,) = load_engine(tmp_path / "sharded", EngineConfig()).respond([request])
    assert whole.token_logprobs == sharded.token_logprobs


def test_a_checkpoint_without_eos_and_pad_writes_to_the_end(build, tmp_path, ask) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(build("llama"), folder, ignore=shutil.ignore_patterns("generation_config.json"))
    _config(eos_token_id=None, pad_token_id=None)(folder)
    (folder / "tokenizer_config.json").write_text("{}")
    engine = load_engine(folder, EngineConfig())
    assert (engine.tokenizer.eos_ids, engine.tokenizer.pad_id) == ((), None)
    (row,) = engine.respond([ask("generation", (5, 6, 7), max_tokens=30)])
    assert (len(row.output_ids), row.finish_reason, row.output_truncated) == (30, "length", True)


@pytest.mark.parametrize("pad", [0, 77])
def test_a_pad_id_is_a_token_like_any_other(build, tmp_path, ask, pad: int) -> None:
    """Gemma's embedding and warnings know a pad id; here nothing is padded."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(build("gemma2"), folder)
    requests = [
        ask("choice", (3, 0, 77, *range(5, 60), 77, 0), continuations=((77,), (0, 5))),
        ask("loss", (0,), continuations=((77, 4),)),
    ]
    expected = load_engine(folder, EngineConfig()).respond(requests)
    _config(pad_token_id=pad)(folder)
    found = load_engine(folder, EngineConfig()).respond(requests)
    assert [row.token_logprobs for row in found] == [row.token_logprobs for row in expected]


def test_a_nan_in_one_expert_stays_with_the_rows_that_are_given_to_it(build, tmp_path, ask) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(build("mixtral"), folder)
    name = "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    _weights(lambda w: w[name].fill_(float("nan")))(folder)
    requests = [ask("choice", (i, 2 * i), item_id=str(i), continuations=((4,), (5,))) for i in range(3, 40)]
    engine, healthy = load_engine(folder, EngineConfig()), load_engine(build("mixtral"), EngineConfig())
    found, expected = engine.respond(requests), healthy.respond(requests)
    sick = [row for row in found if row.status == "invalid"]
    assert 0 < len(sick) < len(found)
    assert {row.reason for row in sick} == {"non_finite_logits"}
    for row, same in zip(found, expected, strict=True):
        assert row.status == "invalid" or row.token_logprobs == same.token_logprobs
