"""Choice and loss requests: which numbers come back, and what becomes invalid."""

from __future__ import annotations

import math

import pytest

from eval_tasks.engine.validity import problem_of
from eval_tasks.engine.verification import identities


def test_a_choice_has_one_logprob_per_continuation(load, ask) -> None:
    (response,) = load("llama").respond([ask("choice", range(5, 20), continuations=((7,), (8, 9), (10, 11, 12)))])
    assert response.status == "ok"
    assert [len(values) for values in response.token_logprobs] == [1, 2, 3]
    assert response.logprobs == tuple(math.fsum(values) for values in response.token_logprobs)
    assert (response.n_prompt_tokens, response.n_output_tokens) == (15, 6)
    assert response.latency_ms > 0


def test_a_choice_is_the_same_beside_longer_ones(load, ask) -> None:
    """The first token of a long continuation is predicted by the forward that one-token choices share."""
    engine = load("llama")
    (short,) = engine.respond([ask("choice", range(5, 75), continuations=((7,), (8,)))])
    (long,) = engine.respond([ask("choice", range(5, 75), continuations=((7, 20, 21), (8,)))])
    assert long.token_logprobs[0][0] == short.token_logprobs[0][0]
    assert long.token_logprobs[1] == short.token_logprobs[1]


def test_a_loss_is_the_sum_over_the_document(load, ask) -> None:
    engine = load("llama")
    document = tuple(range(3, 150))
    (whole,) = engine.respond([ask("loss", document[:1], continuations=(document[1:],))])
    (tail,) = engine.respond([ask("loss", document[:100], continuations=(document[100:],))])
    assert len(whole.token_logprobs[0]) == 146
    assert whole.token_logprobs[0][99:] == tail.token_logprobs[0]


def test_probabilities_of_all_tokens_sum_to_one(load, ask) -> None:
    (response,) = load("gpt2").respond([ask("choice", range(3, 40), continuations=tuple((i,) for i in range(259)))])
    assert math.fsum(math.exp(value) for value in response.logprobs) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "prompt", "fields", "reason"),
    [
        ("choice", (), {"continuations": ((1,),)}, "empty_prompt"),
        ("choice", (3,), {"continuations": ()}, "empty_continuation"),
        ("choice", (3,), {"continuations": ((4,), ())}, "empty_continuation"),
        ("loss", (3,), {"continuations": ((4,), (5,))}, "several_continuations"),
        ("loss", (3,), {"continuations": (tuple([5] * 200),)}, ""),
        ("loss", (3,), {"continuations": (tuple([5] * 201),)}, "prompt_too_long"),
        ("choice", (3,) * 200, {"continuations": ((4,),)}, ""),
        ("choice", (3,) * 201, {"continuations": ((4,),)}, "prompt_too_long"),
        ("choice", (3, 259), {"continuations": ((4,),)}, "token_id_out_of_range"),
        ("choice", (3,), {"continuations": ((259,),)}, "token_id_out_of_range"),
        ("choice", (3,), {"continuations": ((-1,),)}, "token_id_out_of_range"),
        ("choice", (3,), {"continuations": ((4,),), "problem": "template_failed"}, "template_failed"),
        ("generation", (3,), {"max_tokens": 0}, "no_output_allowed"),
        ("generation", (3,) * 200, {"max_tokens": 1}, "prompt_too_long"),
        ("generation", (3,) * 199, {"max_tokens": 1}, ""),
    ],
)
def test_what_cannot_run_has_a_reason(ask, kind, prompt, fields, reason: str) -> None:
    assert problem_of(ask(kind, prompt, **fields), context=200, n_embeddings=259) == reason


def test_what_cannot_run_is_invalid_and_disturbs_nobody(load, ask) -> None:
    engine = load("llama")
    good = ask("choice", range(3, 30), item_id="good", continuations=((4,), (5,)))
    bad = ask("choice", (3, 999), item_id="bad", continuations=((4,), (5,)), prompt_truncated=True)
    first, second = engine.respond([bad, good])
    assert (first.status, first.reason, first.logprobs) == ("invalid", "token_id_out_of_range", ())
    assert first.prompt_truncated
    assert identities([second]) == identities(engine.respond([good]))


def test_the_last_token_of_the_context_can_be_predicted(load, ask) -> None:
    """Positions end inside a tile here (200 = 3 * 64 + 8): filler must stay within a table of absolute positions."""
    for family in ("gpt2", "llama"):
        (response,) = load(family).respond([ask("choice", [3] * 200, continuations=((4,),))])
        assert response.status == "ok"


@pytest.mark.parametrize("prefix", ["none", "shared"])
def test_a_nan_is_invalid_and_stays_with_its_item(build, tmp_path, ask, prefix) -> None:
    """Token 100's embedding is not a number; the filler of other items never touches it."""
    engine = _engine_with_nan_row(build("llama", tie_word_embeddings=False), tmp_path, 100, prefix)
    healthy = [ask("choice", range(3, 3 + n), item_id=f"good-{n}", continuations=((4,), (5, 6))) for n in (5, 64, 70)]
    sick = ask("choice", (*range(3, 90), 100), item_id="sick", continuations=((4,), (5,)))
    later = ask("choice", (3, 4), item_id="later", continuations=((5,), (100, 6)))
    writer = ask("generation", (3, 100), item_id="writer", max_tokens=3)
    found = identities(engine.respond([healthy[0], sick, healthy[1], later, writer, healthy[2]]))
    for name in ("sick", "later", "writer"):
        assert (found[name].status, found[name].reason) == ("invalid", "non_finite_logits")
        assert found[name].logprobs == ()
    alone = identities(engine.respond(healthy))
    assert {name: found[name] for name in alone} == alone
    assert all(response.status == "ok" for response in alone.values())


def _engine_with_nan_row(source, folder, token: int, prefix):
    import shutil

    from safetensors.torch import load_file, save_file

    from eval_tasks.engine import load_engine
    from eval_tasks.records import EngineConfig

    shutil.copytree(source, folder, dirs_exist_ok=True)
    weights = load_file(folder / "model.safetensors")
    weights["model.embed_tokens.weight"][token] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return load_engine(folder, EngineConfig(prefix=prefix))
