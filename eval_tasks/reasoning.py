"""A generated text and its benchmark's rule -> what of it is the answer. Engine and scoring cut by the same function.

Stop strings count outside reasoning blocks alone, so that a blank line or a "Question:" in the reasoning does not end
it. White space after a block's end goes with the block: a stop of a blank line would else end the output there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_tasks.records import ReasoningBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a scorer sees of an output; `reason` says what was odd about its reasoning blocks, '' when nothing was."""

    text: str
    reason: str = ""


def first_stop(text: str, stops: Sequence[str], block: ReasoningBlock | None = None) -> int:
    """Where the first stop string begins in `text` outside reasoning, -1 when there is none."""
    for start, end in _outside(text, block)[0]:
        found = [at for stop in stops if stop and (at := text.find(stop, start, end)) >= 0]
        if found:
            return min(found)
    return -1


def is_within(text: str, block: ReasoningBlock) -> bool:
    """Whether what comes after `text` is reasoning."""
    return _outside(text, block)[1]


def answer_of(text: str, stops: Sequence[str], block: ReasoningBlock) -> Answer:
    """`text` before its first stop string and without its reasoning; empty when a block is never closed."""
    at = first_stop(text, stops, block)
    text = text if at < 0 else text[:at]
    spans, is_open = _outside(text, block)
    if is_open:
        return Answer(text="", reason=f"reasoning block {block.name!r} was never closed: no answer")
    answer = "".join(text[start:end] for start, end in spans)
    if block.end in answer:
        return Answer(
            text=answer,
            reason=f"{block.end!r} closes no block: what stands before it is taken for answer (see begins_open)",
        )
    return Answer(text=answer)


def _outside(text: str, block: ReasoningBlock | None) -> tuple[list[tuple[int, int]], bool]:
    """The spans of `text` that are no reasoning, in order, and whether it ends within a block."""
    if block is None:
        return [(0, len(text))], False
    spans: list[tuple[int, int]] = []
    at, within = 0, block.begins_open
    while True:
        if within:
            closed = text.find(block.end, at)
            if closed < 0:
                return spans, True
            at = closed + len(block.end)
            at = len(text) - len(text[at:].lstrip())
            within = False
        opened = text.find(block.start, at)
        if opened < 0:
            return [*spans, (at, len(text))], False
        spans.append((at, opened))
        at, within = opened + len(block.start), True
