"""Greedy generation: when it stops, what it keeps, and what may not leak into it."""

from __future__ import annotations

import json
import shutil

import pytest

from eval_tasks.engine import load_engine
from eval_tasks.engine.verification import identities
from eval_tasks.errors import UserError
from eval_tasks.records import EngineConfig, EngineTuning

PROMPT = (40, 41, 42, 43)


@pytest.fixture(scope="module")
def engine(load):
    return load("llama", tie_word_embeddings=False)


@pytest.fixture(scope="module")
def free(engine, ask):
    """What the model writes when nothing stops it."""
    (response,) = engine.respond([ask("generation", PROMPT, max_tokens=40)])
    assert response.finish_reason == "length"
    return response


def test_max_tokens_is_a_length_stop(free) -> None:
    assert len(free.output_ids) == len(free.token_logprobs[0]) == free.n_output_tokens == 40
    assert free.output_truncated
    assert free.logprobs == (sum(free.token_logprobs[0]),)


def test_generation_does_not_depend_on_companions(engine, ask) -> None:
    requests = [
        ask("generation", range(3, 3 + n), item_id=str(n), max_tokens=3 + n % 11) for n in (1, 5, 30, 63, 64, 65, 100)
    ]
    expected = identities(engine.respond(requests))
    for tuning in (
        EngineTuning(decode_rows=2, tokens_per_forward=1),
        EngineTuning(decode_rows=5, tokens_per_forward=3),
    ):
        assert identities(engine.tuned(tuning).respond(requests[::-1])) == expected
    assert identities(engine.respond(requests[2:4])) == {name: expected[name] for name in ("30", "63")}


def test_a_generation_crosses_tiles(engine, ask) -> None:
    """From 60 to 190 positions: the cache grows by tiles, and a longer limit does not change what came before."""
    long, short = (ask("generation", range(3, 63), item_id=str(n), max_tokens=n) for n in (130, 70))
    first, second = engine.respond([long, short])
    assert first.output_ids[:70] == second.output_ids


def test_a_stop_string_across_tokens_cuts_the_text_before_it(engine, ask, free) -> None:
    assert len(free.output) > 20
    stop = free.output[10:14]
    at = free.output.index(stop)
    (response,) = engine.respond([ask("generation", PROMPT, max_tokens=40, stops=("never seen", stop))])
    assert (response.output, response.finish_reason, response.output_truncated) == (free.output[:at], "stop", False)
    assert response.output_ids == free.output_ids[: len(response.output_ids)]
    assert len(response.output_ids) < 40


def test_every_eos_id_ends_its_own_row(build, ask, engine, free, tmp_path) -> None:
    first, second = free.output_ids[6], free.output_ids[15]
    shutil.copytree(build("llama", tie_word_embeddings=False), tmp_path, dirs_exist_ok=True)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [first, second]}))
    stopped = load_engine(tmp_path, EngineConfig())
    other = ask("generation", (50, 51), item_id="other", max_tokens=40)
    response, companion = stopped.respond([ask("generation", PROMPT, max_tokens=40), other])
    end = min(free.output_ids.index(first), free.output_ids.index(second)) + 1
    assert (response.output_ids, response.finish_reason) == (free.output_ids[:end], "eos")
    assert response.output == engine.tokenizer.decode(free.output_ids[: end - 1])
    assert not response.output_truncated
    assert identities([companion]) == identities(stopped.respond([other]))


def test_sampling_settings_of_a_checkpoint_do_not_leak(build, ask, free, tmp_path) -> None:
    shutil.copytree(build("llama", tie_word_embeddings=False), tmp_path, dirs_exist_ok=True)
    settings = {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "top_k": 3, "max_new_tokens": 2}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    (response,) = load_engine(tmp_path, EngineConfig()).respond([ask("generation", PROMPT, max_tokens=40)])
    assert identities([response]) == identities([free])


def test_the_context_ends_a_generation(engine, ask) -> None:
    (response,) = engine.respond([ask("generation", [5] * 190, max_tokens=40)])
    assert (len(response.output_ids), response.finish_reason, response.output_truncated) == (10, "length", True)


def test_a_configured_context_is_a_limit(build, ask) -> None:
    engine = load_engine(build("llama"), EngineConfig(max_context=100))
    full, over = engine.respond(
        [
            ask("generation", [5] * 95, item_id="full", max_tokens=40),
            ask("choice", [5] * 101, item_id="over", continuations=((1,),)),
        ]
    )
    assert len(full.output_ids) == 5
    assert (over.status, over.reason) == ("invalid", "prompt_too_long")


def test_odd_widths_keep_their_bits_with_one_thread_and_refuse_two(build, ask) -> None:
    """171 x 64 elements end within a vector at most row counts."""
    folder = build("llama", intermediate_size=171)
    engine = load_engine(folder, EngineConfig())
    requests = [ask("generation", range(3, 3 + n), item_id=str(n), max_tokens=12) for n in range(1, 24)]
    expected = identities(engine.respond(requests))
    for request in requests[::4]:
        assert identities(engine.respond([request])) == {request.item_id: expected[request.item_id]}
    with pytest.raises(UserError, match="odd width"):
        load_engine(folder, EngineConfig(threads=2))


def test_kinds_may_be_mixed_and_keep_their_order(engine, ask) -> None:
    requests = [
        ask("generation", PROMPT, item_id="a", max_tokens=2),
        ask("choice", PROMPT, item_id="b", continuations=((5,),)),
        ask("generation", PROMPT, item_id="c", max_tokens=0),
        ask("loss", PROMPT, item_id="d", continuations=((5, 6),)),
    ]
    responses = engine.respond(requests)
    assert [r.item_id for r in responses] == ["a", "b", "c", "d"]
    assert [r.status for r in responses] == ["ok", "ok", "invalid", "ok"]
    assert engine.respond([]) == []
