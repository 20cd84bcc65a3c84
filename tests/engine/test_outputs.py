"""Sampled generation: k outputs per item from one reading of its prompt, the same bits under any batching."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from eval_tasks.engine import load_engine
from eval_tasks.engine.sampling import Sampler
from eval_tasks.engine.verification import identities
from eval_tasks.records import EngineConfig, EngineTuning, ReasoningBlock, Sampling

SAMPLING = Sampling(temperature=0.8, samples=5, top_p=0.95, top_k=100, reason="test")
PROMPT = (40, 41, 42, 43)


@pytest.fixture(scope="module")
def engine(load):
    return load("llama", tie_word_embeddings=False)


@pytest.fixture(scope="module")
def requests(ask):
    """Prompts around the tiles' edges."""
    return [
        ask("generation", range(3, 3 + n), item_id=f"item-{n}", max_tokens=2 + n % 9, sampling=SAMPLING, seed=3)
        for n in (1, 5, 31, 32, 33, 64, 100)
    ]


@pytest.fixture(scope="module")
def expected(engine, requests):
    return identities(engine.respond(requests))


@pytest.mark.parametrize(("family", "dtype"), [("gpt2", "float32"), ("qwen3", "float32"), ("llama", "bfloat16")])
def test_draws_have_no_history_in_any_family(load, requests, family: str, dtype: str) -> None:
    engine = load(family, dtype)
    expected = identities(engine.respond(requests[1:6]))
    assert len({s.output_ids for row in expected.values() for s in row.samples}) > len(expected)
    tuned = engine.tuned(EngineTuning(tokens_per_forward=40, decode_rows=6))
    assert identities(tuned.respond(requests[5:0:-1])) == expected
    assert identities(engine.with_prefix("shared").respond(requests[3:4])) == {
        requests[3].item_id: expected[requests[3].item_id]
    }


def test_every_sample_is_kept_in_one_row(engine, ask) -> None:
    (row,) = engine.respond([ask("generation", PROMPT, max_tokens=12, sampling=SAMPLING)])
    assert (row.status, len(row.samples), row.output, row.output_ids, row.logprobs) == ("ok", 5, "", (), ())
    assert row.n_output_tokens == sum(len(sample.output_ids) for sample in row.samples)
    assert row.output_truncated == any(sample.finish_reason == "length" for sample in row.samples)
    for sample in row.samples:
        assert sample.finish_reason in ("length", "eos")
        assert len(sample.token_logprobs) == len(sample.output_ids) <= 12
        ids = sample.output_ids[:-1] if sample.finish_reason == "eos" else sample.output_ids
        assert sample.output == engine.tokenizer.decode(ids)
    assert len({sample.output_ids for sample in row.samples}) > 1


@pytest.mark.parametrize("tuning", [(1, 1), (7, 3), (64, 9), (4096, 64)])
def test_neither_order_nor_tuning_is_an_input(engine, requests, expected, tuning) -> None:
    """One row for five samples, too: the others wait with their first token."""
    tuned = engine.tuned(EngineTuning(tokens_per_forward=tuning[0], decode_rows=tuning[1]))
    assert identities(tuned.respond(requests[::-1])) == expected


def test_neither_companions_nor_a_shared_prefix_nor_threads_are_inputs(engine, requests, expected, ask) -> None:
    greedy = [ask("generation", range(3, 40), item_id=f"greedy-{n}", max_tokens=n) for n in (3, 9)]
    plain = identities(engine.respond(greedy))
    mixed = identities(engine.respond([greedy[0], *requests[2:5], greedy[1], requests[6]]))
    assert mixed == {name: {**expected, **plain}[name] for name in mixed}
    for request in requests[::3]:
        assert identities(engine.respond([request])) == {request.item_id: expected[request.item_id]}
    shared = engine.with_prefix("shared")
    assert identities(shared.respond(requests)) == expected
    assert shared.paths.n_reused_tokens > 0
    try:
        assert identities(engine.with_threads(2).respond(requests)) == expected
    finally:
        engine.respond(requests[:1])


def test_a_sample_does_not_depend_on_how_many_there_are(engine, requests, expected) -> None:
    fewer = [replace(request, sampling=replace(SAMPLING, samples=2)) for request in requests]
    found = identities(engine.respond(fewer))
    assert {name: row.samples for name, row in found.items()} == {n: r.samples[:2] for n, r in expected.items()}


def test_the_prompt_is_read_once_for_all_samples(engine, ask, monkeypatch) -> None:
    read = []
    forward = engine._body.forward

    def counted(parts, *others, **options):
        read.extend(len(part.ids) for part in parts)
        return forward(parts, *others, **options)

    monkeypatch.setattr(engine._body, "forward", counted)
    engine.respond([ask("generation", range(3, 60), max_tokens=4, sampling=SAMPLING)])
    assert read == [57]


def test_the_draws_are_those_of_the_plain_model_s_distribution(build, engine, ask) -> None:
    """Token by token from transformers' own logits: rows that agree to 1e-5 give the same draws but for a rare edge."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        build("llama", tie_word_embeddings=False), attn_implementation="eager"
    ).eval()
    (row,) = engine.respond([ask("generation", PROMPT, item_id="q", max_tokens=10, sampling=SAMPLING, seed=11)])
    for n, sample in enumerate(row.samples):
        sampler = Sampler(SAMPLING, seed=11, item_id="q", sample=n)
        ids = list(PROMPT)
        for position, token in enumerate(sample.output_ids):
            with torch.inference_mode():
                logprobs = model(torch.tensor([ids])).logits[0, -1].float().log_softmax(-1).numpy()
            assert sampler.draw(logprobs, position) == token
            assert sample.token_logprobs[position] == pytest.approx(float(logprobs[token]), abs=1e-3)
            ids.append(token)


def test_a_low_temperature_is_greedy(engine, ask) -> None:
    cold = replace(SAMPLING, temperature=1e-6, top_p=1.0, top_k=0)
    (greedy,) = engine.respond([ask("generation", PROMPT, max_tokens=20)])
    (sampled,) = engine.respond([ask("generation", PROMPT, max_tokens=20, sampling=cold)])
    assert {sample.output_ids for sample in sampled.samples} == {greedy.output_ids}
    assert {sample.token_logprobs for sample in sampled.samples} == {greedy.token_logprobs[0]}


def test_seed_and_item_give_other_samples(engine, ask) -> None:
    asked = [
        ask("generation", PROMPT, item_id=item_id, max_tokens=12, sampling=SAMPLING, seed=seed)
        for item_id, seed in (("a", 0), ("b", 0), ("a", 1))
    ]
    drawn = [tuple(s.output_ids for s in engine.respond([request])[0].samples) for request in asked]
    assert len(set(drawn)) == 3


def test_each_sample_ends_by_itself(build, ask, tmp_path) -> None:
    """Some at their first token: with every id below 130 as EOS, about half of the draws end an output."""
    shutil.copytree(build("llama", tie_word_embeddings=False), tmp_path, dirs_exist_ok=True)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": list(range(130))}))
    hot = replace(SAMPLING, temperature=3.0, samples=16, top_p=1.0, top_k=0)
    engine = load_engine(tmp_path, EngineConfig())
    request = ask("generation", PROMPT, max_tokens=8, sampling=hot)
    (row,) = engine.respond([request])
    lengths = [len(sample.output_ids) for sample in row.samples]
    assert {sample.finish_reason for sample in row.samples} >= {"eos"}
    assert min(lengths) == 1 < max(lengths)
    (few,) = engine.tuned(EngineTuning(decode_rows=2)).respond([request])
    assert identities([few]) == identities([row])


def test_sampling_settings_of_a_checkpoint_do_not_leak_into_declared_ones(
    build, ask, requests, expected, tmp_path
) -> None:
    shutil.copytree(build("llama", tie_word_embeddings=False), tmp_path, dirs_exist_ok=True)
    settings = {
        "do_sample": True,
        "temperature": 5.0,
        "top_k": 3,
        "top_p": 0.1,
        "min_p": 0.5,
        "num_return_sequences": 2,
    }
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    engine = load_engine(tmp_path, EngineConfig())
    assert identities(engine.respond(requests[:2])) == {r.item_id: expected[r.item_id] for r in requests[:2]}


def test_no_stop_ends_a_sample_within_its_reasoning(engine, ask) -> None:
    """With a rule whose block opens with the prompt and never ends, a stop that would cut every sample cuts none."""
    (free,) = engine.respond([ask("generation", PROMPT, max_tokens=12, sampling=SAMPLING)])
    stops = tuple({sample.output[:1] for sample in free.samples if sample.output})
    block = ReasoningBlock(name="r", start="\x00never", end="\x00ends", begins_open=True)
    (cut,) = engine.respond([ask("generation", PROMPT, max_tokens=12, sampling=SAMPLING, stops=stops)])
    (kept,) = engine.respond(
        [ask("generation", PROMPT, max_tokens=12, sampling=SAMPLING, stops=stops, reasoning=block)]
    )
    assert {sample.output for sample in cut.samples} == {""}
    assert kept.samples == free.samples


def test_a_sample_whose_logits_are_not_finite_makes_the_item_invalid(build, ask, tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(build("llama", tie_word_embeddings=False), tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"][5, 0] = math.nan
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (row,) = load_engine(tmp_path, EngineConfig()).respond([ask("generation", PROMPT, max_tokens=4, sampling=SAMPLING)])
    assert (row.status, row.reason, row.samples) == ("invalid", "non_finite_logits", ())


def test_the_head_s_rows_are_its_log_probabilities(engine) -> None:
    import torch

    hidden = torch.from_numpy(np.random.Generator(np.random.PCG64(1)).standard_normal((40, 64)).astype(np.float32))
    rows = engine._head.rows_of(hidden)
    assert len(rows) == 40
    for row, best in zip(rows, engine._head.greedy(hidden), strict=True):
        assert row is not None and best is not None
        assert (int(row.argmax()), float(row.max())) == best
