"""`length_constraints:*`: how many sentences, words and paragraphs."""

from __future__ import annotations

import re

from eval_tasks.scoring.instructions.registry import count, holds, instruction, position, relation, text
from eval_tasks.scoring.instructions.segmentation import count_sentences, count_words

_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_FIRST_WORD_ENDS = re.compile(r"""[.,?!'"]""")


@instruction("length_constraints:number_sentences", num_sentences=count, relation=relation)
def number_sentences(response: str, *, num_sentences: int, relation: str) -> bool:
    """Less than, or at least, that many sentences by English Punkt."""
    return holds(relation, count_sentences(response), num_sentences)


@instruction("length_constraints:number_words", num_words=count, relation=relation)
def number_words(response: str, *, num_words: int, relation: str) -> bool:
    r"""Less than, or at least, that many ``\w+`` words."""
    return holds(relation, count_words(response), num_words)


@instruction("length_constraints:number_paragraphs", num_paragraphs=count)
def number_paragraphs(response: str, *, num_paragraphs: int) -> bool:
    """Exactly that many paragraphs between ``***`` dividers; only the first and last stretch may be blank."""
    stretches = [stretch.strip() for stretch in _DIVIDER.split(response)]
    if not all(stretches[1:-1]):
        return False
    return sum(1 for stretch in stretches if stretch) == num_paragraphs


@instruction(
    "length_constraints:nth_paragraph_first_word", num_paragraphs=count, nth_paragraph=position, first_word=text
)
def nth_paragraph_first_word(response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """That many paragraphs (parted by an empty line), and the n-th, blank ones counted, starts with the word."""
    paragraphs = [paragraph.strip() for paragraph in response.split("\n\n")]
    n_filled = sum(1 for paragraph in paragraphs if paragraph)
    if nth_paragraph > n_filled or not paragraphs[nth_paragraph - 1]:
        return False
    word = paragraphs[nth_paragraph - 1].split()[0].lstrip("'").lstrip('"')
    word = _FIRST_WORD_ENDS.split(word, maxsplit=1)[0]
    return n_filled == num_paragraphs and word.lower() == first_word.lower()
