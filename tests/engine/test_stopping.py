"""When a generation ends and which text it leaves, token by token, without a model."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from eval_tasks.engine.stopping import Stopper
from eval_tasks.errors import UserError
from eval_tasks.records import ReasoningBlock
from eval_tasks.tokenization import Tokenizer, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(build) -> Tokenizer:
    return load_tokenizer(build("llama"))


THINK = ReasoningBlock(name="think", start="<think>", end="</think>")


def _write(
    tokenizer: Tokenizer,
    ids: list[int],
    stops: tuple[str, ...],
    max_tokens: int = 100,
    reasoning: ReasoningBlock | None = None,
) -> Stopper:
    stopper = Stopper(tokenizer, stops, max_tokens, reasoning)
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


@pytest.mark.parametrize(
    ("text", "kept", "reason"),
    [
        ("<think>a\n\nb</think>\n\nc\n\nd", "<think>a\n\nb</think>\n\nc", "stop"),
        ("<think>a\n\nb", "<think>a\n\nb", ""),
        ("x\n\n<think>", "x", "stop"),
        ("<think>a</think>b<think>\n\n</think>c\n\n", "<think>a</think>b<think>\n\n</think>c", "stop"),
    ],
)
def test_no_stop_string_ends_an_output_within_reasoning(tokenizer, text: str, kept: str, reason: str) -> None:
    stopper = _write(tokenizer, tokenizer.encode(text), ("\n\n",), reasoning=THINK)
    assert (stopper.text(), stopper.reason) == (kept, reason)


def test_reasoning_that_the_prompt_opened_is_not_cut_either(tokenizer) -> None:
    block = replace(THINK, begins_open=True)
    stopper = _write(tokenizer, tokenizer.encode("a\n\nb</think>c\n\nd"), ("\n\n",), reasoning=block)
    assert (stopper.text(), stopper.reason) == ("a\n\nb</think>c", "stop")


def test_eos_and_length_end_an_output_within_reasoning(tokenizer) -> None:
    ids = tokenizer.encode("<think>a\n\nb")
    assert _write(tokenizer, [*ids, 1, 50], ("\n\n",), reasoning=THINK).reason == "eos"
    stopper = _write(tokenizer, ids, ("\n\n",), max_tokens=10, reasoning=THINK)
    assert (stopper.text(), stopper.reason) == ("<think>a\n\n", "length")


def test_a_special_token_as_stop_counts_outside_reasoning_alone(tokenizer) -> None:
    ids = [*tokenizer.encode("<think>a"), 2, *tokenizer.encode("b</think>c"), 2, *tokenizer.encode("d")]
    stopper = _write(tokenizer, ids, ("<|end|>",), reasoning=THINK)
    assert (stopper.text(), stopper.reason) == ("<think>ab</think>c", "stop")
    assert stopper.ids == ids[:-1]
    cut = _write(tokenizer, ids[:9], ("<|end|>",), max_tokens=9, reasoning=THINK)
    assert (cut.text(), cut.reason) == ("<think>a", "length")


def test_markers_that_are_special_tokens_are_kept_and_other_special_tokens_are_not(tokenizer) -> None:
    block = ReasoningBlock(name="think", start="<|end|>", end="</think>")
    ids = [2, *tokenizer.encode("a\n\n</think>"), 0, *tokenizer.encode("4\n\nmore")]
    stopper = _write(tokenizer, ids, ("\n\n",), reasoning=block)
    assert stopper.text() == "<|end|>a\n\n</think>4"
    assert stopper.reason == "stop"
    plain = _write(tokenizer, ids, (), reasoning=None)
    assert plain.text() == tokenizer.decode(ids)
