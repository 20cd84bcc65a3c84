"""`detectable_content:*`, `combination:*` and `startend:*`."""

from __future__ import annotations

import pytest

from eval_tasks.scoring.instructions import bind


def test_placeholders() -> None:
    two = bind("detectable_content:number_placeholders", {"num_placeholders": 2})
    assert two.followed("[name], [] and more")
    assert not two.followed("[name] and [a\nb]")


@pytest.mark.parametrize(
    ("marker", "text", "followed"),
    [
        ("P.S.", "Bye.\nP.S. more", True),
        ("P.S.", "Bye. p. s. more", True),
        ("P.S.", "Bye.\nPS more", False),
        ("P.P.S", "P. P. S more", True),
        ("P.P.S", "P.S. more", False),
        ("Note:", "note: more", True),
        ("(also", "Also", False),
        ("(also", "so (also) this", True),
    ],
)
def test_postscript(marker: str, text: str, followed: bool) -> None:
    assert bind("detectable_content:postscript", {"postscript_marker": marker}).followed(text) is followed


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ("one ****** two", True),
        ("******\none\n******\ntwo\n******", True),
        ("one ****** one", False),
        ("one ****** ****** two", False),
        ("one *** two", False),
        ("a ****** b ****** c", False),
    ],
)
def test_two_responses(text: str, followed: bool) -> None:
    assert bind("combination:two_responses", {}).followed(text) is followed


def test_repeat_prompt() -> None:
    repeat = bind("combination:repeat_prompt", {"prompt_to_repeat": " Say this. "})
    assert repeat.followed("\n say THIS. And more")
    assert not repeat.followed("I say this.")


def test_end_checker() -> None:
    end = bind("startend:end_checker", {"end_phrase": "The end. "})
    assert end.followed('"So. THE END." ')
    assert not end.followed("The end. Really")


@pytest.mark.parametrize(
    ("text", "followed"), [(' "all of it" ', True), ('"', False), ("“curly”", False), ('"start', False)]
)
def test_quotation(text: str, followed: bool) -> None:
    assert bind("startend:quotation", {}).followed(text) is followed
