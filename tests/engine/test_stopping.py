"""When a generation ends and which text it leaves, token by token, without a model."""

from __future__ import annotations

import random

import pytest

from eval_tasks.engine.stopping import Stopper
from eval_tasks.errors import UserError
from eval_tasks.tokenization import Tokenizer, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(build) -> Tokenizer:
    return load_tokenizer(build("llama"))


def _write(tokenizer: Tokenizer, ids: list[int], stops: tuple[str, ...], max_tokens: int = 100) -> Stopper:
    stopper = Stopper(tokenizer, stops, max_tokens)
    for token_id in ids:
        if stopper.add(token_id):
            break
    return stopper


@pytest.mark.parametrize(
    ("text", "stops", "kept", "reason", "n_read"),
    [
        ("one\n\nQuestion: two", ("Question:",), "one\n\n", "stop", 14),
        ("one\n\nQuestion: two", ("\n\n", "Question:"), "one", "stop", 5),
        ("Question:", ("Question:",), "", "stop", 9),
        ("abcabd", ("abd",), "abc", "stop", 6),
        ("no stop here", ("Stop",), "no stop here", "", 12),
        ("nothing", ("",), "nothing", "", 7),
        ("aXYb", ("XYb", "Y"), "aX", "stop", 3),
        ("naïve — “so”", ("“",), "naïve — ", "stop", 14),
    ],
)
def test_stop_strings(tokenizer, text: str, stops: tuple[str, ...], kept: str, reason: str, n_read: int) -> None:
    stopper = _write(tokenizer, tokenizer.encode(text), stops)
    assert (stopper.text(), stopper.reason, len(stopper.ids)) == (kept, reason, n_read)


def test_eos_ends_and_leaves_no_text(tokenizer) -> None:
    stopper = _write(tokenizer, [*tokenizer.encode("done"), 1, *tokenizer.encode("more")], ())
    assert (stopper.text(), stopper.reason, stopper.ids[-1]) == ("done", "eos", 1)


def test_a_stop_string_that_is_a_special_token_ends_at_its_id(tokenizer) -> None:
    """It is skipped in the text, so it could never be found there."""
    stopper = _write(tokenizer, [*tokenizer.encode("hi"), 2, *tokenizer.encode("more")], ("Question:", "<|end|>"))
    assert (stopper.text(), stopper.reason, len(stopper.ids)) == ("hi", "stop", 3)


def test_max_tokens_ends_in_the_middle_of_a_character(tokenizer) -> None:
    stopper = _write(tokenizer, tokenizer.encode("a—b"), (), max_tokens=2)
    assert (stopper.text(), stopper.reason) == ("a�", "length")


@pytest.mark.golden
def test_any_token_ids_have_a_text_with_byte_fallback(golden) -> None:
    """Bytes that are no UTF-8 turn earlier ones into U+FFFD too: a stop counts if the text so far has it."""
    tokenizer = load_tokenizer(golden / "models/stories260K-hf")
    rng = random.Random(0)
    for _ in range(300):
        ids = [rng.randrange(3, rng.choice((259, 512))) for _ in range(40)]
        stopper = _write(tokenizer, ids, ("e", "“"))
        texts = [tokenizer.decode(ids[:n]) for n in range(1, len(stopper.ids) + 1)]
        assert [("e" in text or "“" in text) for text in texts] == [False] * (len(texts) - 1) + [
            stopper.reason == "stop"
        ]
        assert stopper.text() == texts[-1].partition("e")[0].partition("“")[0]


def test_one_text_as_the_list_of_stops_is_an_error(tokenizer) -> None:
    with pytest.raises(UserError, match="give a list"):
        Stopper(tokenizer, "Question:", 5)


def test_a_stop_string_beats_the_length(tokenizer) -> None:
    stopper = _write(tokenizer, tokenizer.encode("ab"), ("b",), max_tokens=2)
    assert (stopper.text(), stopper.reason) == ("a", "stop")
