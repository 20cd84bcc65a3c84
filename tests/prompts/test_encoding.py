from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_tasks.errors import UserError
from eval_tasks.prompts.compose import Prompt
from eval_tasks.prompts.encoding import Encoder, shared_prefix
from eval_tasks.tokenization import Tokenizer

Make = Callable[..., Tokenizer]


def _prompt(context: str, *choices: str, delimiter: str = " ") -> Prompt:
    return Prompt(context=context, choices=choices, delimiter=delimiter)


def test_context_and_continuations_are_those_of_the_whole(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    (encoded,) = Encoder(tokenizer, "never", 100).choices([_prompt("Q:", "A", "Bc")])
    assert encoded.prompt_ids == tokenizer.encode("Q:")
    assert encoded.continuations == [tokenizer.encode(" A"), tokenizer.encode(" Bc")]
    assert [len(ids) for ids in encoded.continuations] == [1, 3]
    assert not encoded.boundary_merge
    assert not encoded.problem


def test_white_space_at_the_contexts_end_moves_to_the_continuation(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    (encoded,) = Encoder(tokenizer, "never", 100).choices([_prompt("Q: \n", "A", delimiter="")])
    assert encoded.prompt_ids == tokenizer.encode("Q:")
    assert encoded.continuations == [tokenizer.encode(" \nA")]


def test_a_merge_across_the_boundary_gives_one_prompt_and_no_empty_continuation(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    (encoded,) = Encoder(tokenizer, "never", 100).choices([_prompt("xy", "z", "w", delimiter="")])
    assert encoded.boundary_merge
    assert encoded.prompt_ids == tokenizer.encode("x")
    assert encoded.continuations == [tokenizer.encode("yz"), tokenizer.encode("yw")]
    assert not encoded.problem


@pytest.mark.parametrize("choices", [("", "A"), ("A", ""), ("", "z")])
def test_an_empty_continuation_is_a_problem(make_tokenizer: Make, choices: tuple[str, ...]) -> None:
    (encoded,) = Encoder(make_tokenizer(), "auto", 100).choices([_prompt("xy", *choices, delimiter="")])
    assert encoded.problem == "empty_continuation"


@pytest.mark.parametrize(
    ("policy", "adds_bos", "text", "expected"),
    [
        ("auto", True, "Q", 1),
        ("auto", False, "Q", 0),
        ("always", False, "Q", 1),
        ("never", True, "Q", 0),
        ("auto", True, "<s>Q", 1),
        ("always", True, "<s><s>Q", 1),
        ("never", True, "<s>Q", 1),
    ],
)
def test_bos_by_policy_and_never_two(
    make_tokenizer: Make, policy: str, adds_bos: bool, text: str, expected: int
) -> None:
    tokenizer = make_tokenizer(adds_bos=adds_bos)
    encoder = Encoder(tokenizer, policy, 100)  # type: ignore[arg-type]
    ids = [0] * expected + tokenizer.encode("Q")
    assert encoder.choices([_prompt(text, "A")])[0].prompt_ids == ids
    assert encoder.generations([_prompt(text)], 5)[0].prompt_ids == ids
    if policy != "never":
        (document,) = encoder.documents([_prompt(text + "Q")])
        assert document.prompt_ids + document.continuations[0] == ids + tokenizer.encode("Q")


def test_bos_always_without_a_bos_token(make_tokenizer: Make) -> None:
    with pytest.raises(UserError, match="names no BOS token"):
        Encoder(make_tokenizer(special=False), "always", 100)


def test_an_empty_prompt_gets_bos_or_is_a_problem(make_tokenizer: Make) -> None:
    assert Encoder(make_tokenizer(), "never", 100).choices([_prompt("", "A")])[0].prompt_ids == [0]
    tokenizer = make_tokenizer(special=False)
    assert Encoder(tokenizer, "never", 100).choices([_prompt("", "A")])[0].problem == "empty_prompt"
    merged = Encoder(make_tokenizer(), "never", 100).choices([_prompt("y", "z", delimiter="")])[0]
    assert (merged.prompt_ids, merged.boundary_merge) == ([0], True)


def test_choices_keep_the_last_tokens_of_the_context(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    encoder = Encoder(tokenizer, "auto", 10)
    fits, cut, too_long = encoder.choices(
        [_prompt("12345678", " ABC"), _prompt("123456789abc", "ABC", "B"), _prompt("1", "B" * 11)]
    )
    # the model reads context and continuation but for the last token: ten of them
    assert (len(fits.prompt_ids), fits.n_over) == (9 - 2, 2)
    assert cut.prompt_ids == tokenizer.encode("56789abc")
    assert cut.n_over == 5
    assert too_long.problem == "continuation_too_long"


def test_exactly_the_context_is_not_cut(make_tokenizer: Make) -> None:
    encoder = Encoder(make_tokenizer(), "auto", 10)
    (choice,) = encoder.choices([_prompt("123456789", "A")])
    assert (len(choice.prompt_ids), len(choice.continuations[0]), choice.n_over) == (10, 1, 0)
    (generation,) = encoder.generations([_prompt("12345")], 4)
    assert (len(generation.prompt_ids), generation.n_over) == (6, 0)
    (document,) = encoder.documents([_prompt("1234567890")])
    assert (len(document.continuations[0]), document.n_over) == (10, 0)


def test_generation_leaves_room_for_its_tokens(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    (encoded,) = Encoder(tokenizer, "auto", 10).generations([_prompt("1234567")], 4)
    assert encoded.prompt_ids == tokenizer.encode("234567")
    assert encoded.n_over == 2


def test_documents(make_tokenizer: Make) -> None:
    tokenizer = make_tokenizer()
    text = "é one"
    ids = tokenizer.encode(text)
    (with_bos,) = Encoder(tokenizer, "auto", 100).documents([_prompt(text)])
    assert (with_bos.prompt_ids, with_bos.continuations, with_bos.n_bytes) == ([0], [ids], 6)
    (without,) = Encoder(tokenizer, "never", 100).documents([_prompt("a" + text)])
    assert (without.prompt_ids, without.continuations, without.n_bytes) == (tokenizer.encode("a"), [ids], 6)
    (cut,) = Encoder(tokenizer, "auto", 3).documents([_prompt("abcde")])
    assert (cut.continuations, cut.n_over, cut.n_bytes) == ([tokenizer.encode("abc")], 2, 3)
    (short,) = Encoder(tokenizer, "never", 3).documents([_prompt("abcde")])
    assert (short.prompt_ids, short.continuations) == (tokenizer.encode("a"), [tokenizer.encode("bcd")])
    assert (short.n_over, short.n_bytes) == (1, 3)


@pytest.mark.parametrize(("bos", "text"), [("auto", ""), ("never", "a"), ("never", "")])
def test_a_document_with_nothing_to_score(make_tokenizer: Make, bos: str, text: str) -> None:
    (encoded,) = Encoder(make_tokenizer(), bos, 100).documents([_prompt(text)])  # type: ignore[arg-type]
    assert encoded.problem == "empty_continuation"


def test_shared_prefix() -> None:
    assert [shared_prefix([1, 2, 3], other) for other in ([1, 2, 3, 4], [1, 2], [1, 9, 3], [], [5])] == [3, 2, 1, 0, 0]
