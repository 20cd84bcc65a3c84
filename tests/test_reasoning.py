"""What of an output is reasoning, what is answer, and where stop strings count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_tasks.reasoning import answer_of, first_stop, is_within
from eval_tasks.records import ReasoningBlock

THINK = ReasoningBlock(name="think", start="<think>", end="</think>")
OPEN = replace(THINK, begins_open=True)


@pytest.mark.parametrize(
    ("text", "block", "answer"),
    [
        ("<think>2+2</think>4", THINK, "4"),
        ("<think>2+2</think>\n\n4\n", THINK, "4\n"),
        ("Well. <think>a</think> b <think></think>c", THINK, "Well. b c"),
        ("no block at all", THINK, "no block at all"),
        ("", THINK, ""),
        ("<think></think>", THINK, ""),
        ("<think>one <think>two</think> after", THINK, "after"),
        ("2+2</think>\n4", OPEN, "4"),
        ("<think>again</think>4", OPEN, "4"),
        ("a</think>b<think>c</think>d", OPEN, "bd"),
        ("[r]x[r]y", ReasoningBlock(name="r", start="[r]", end="[r]"), "y"),
    ],
)
def test_the_answer_is_what_stands_outside_blocks(text: str, block: ReasoningBlock, answer: str) -> None:
    found = answer_of(text, (), block)
    assert (found.text, found.reason) == (answer, "")
    assert not is_within(text, block)


@pytest.mark.parametrize(
    ("text", "block"),
    [("<think>and then", THINK), ("Sure. <think>a</think> b <think>", THINK), ("4", OPEN), ("", OPEN)],
)
def test_a_block_that_is_never_closed_makes_all_of_it_reasoning(text: str, block: ReasoningBlock) -> None:
    found = answer_of(text, (), block)
    assert is_within(text, block)
    assert found.text == ""
    assert found.reason == "reasoning block 'think' was never closed: no answer"


def test_an_end_without_a_start_is_text_and_is_told() -> None:
    found = answer_of("hm </think> 4", (), THINK)
    assert found.text == "hm </think> 4"
    assert found.reason.startswith("'</think>' closes no block")


@pytest.mark.parametrize(
    ("text", "block", "at"),
    [
        ("a\n\nb", None, 1),
        ("a\n\nb", THINK, 1),
        ("<think>a\n\nb", THINK, -1),
        ("a\n\nb", OPEN, -1),
        ("<think>a\n\nb</think>\n\nc\n\nd", THINK, 22),
        ("x <think>a\n\n</think>y", THINK, -1),
        ("x\n\n<think>a\n\n</think>y", THINK, 1),
    ],
)
def test_a_stop_string_counts_outside_blocks_alone(text: str, block: ReasoningBlock | None, at: int) -> None:
    assert first_stop(text, ("\n\n",), block) == at


def test_the_first_of_several_stops_cuts_and_an_empty_one_never_does() -> None:
    assert first_stop("abcd", ("cd", "", "bc")) == 1
    assert first_stop("abcd", ("",)) == -1


def test_the_answer_ends_at_the_stop_and_reasoning_after_it_is_nobody_s() -> None:
    assert answer_of("<think>#</think>4#<think>never closed", ("#",), THINK).text == "4"
