"""`keywords:*` and `punctuation:*`: words and characters that must or must not be there.

A keyword is a regular expression in the reference, so it is one here; one that does not compile is taken literally.
"""

from __future__ import annotations

import re

from eval_tasks.scoring.instructions.registry import character, count, holds, instruction, relation, text, texts


def _pattern(keyword: str, template: str = "{}") -> re.Pattern[str]:
    try:
        return re.compile(template.format(keyword), re.IGNORECASE)
    except re.error:
        return re.compile(template.format(re.escape(keyword)), re.IGNORECASE)


@instruction("keywords:existence", keywords=texts)
def existence(response: str, *, keywords: list[str]) -> bool:
    """Every keyword occurs, in any case, inside a word too."""
    return all(_pattern(keyword).search(response) for keyword in keywords)


@instruction("keywords:frequency", keyword=text, frequency=count, relation=relation)
def frequency(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    """The keyword occurs less than, or at least, `frequency` times."""
    found = sum(1 for _ in _pattern(keyword.strip()).finditer(response))
    return holds(relation, found, frequency)


@instruction("keywords:forbidden_words", forbidden_words=texts)
def forbidden_words(response: str, *, forbidden_words: list[str]) -> bool:
    """None of the words occurs as a word: "bad" is not in "badge"."""
    return not any(_pattern(word, r"\b{}\b").search(response) for word in forbidden_words)


@instruction("keywords:letter_frequency", letter=character, let_frequency=count, let_relation=relation)
def letter_frequency(response: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    """The character occurs less than, or at least, `let_frequency` times, in any case; "#" is counted as "#"."""
    return holds(let_relation, response.lower().count(letter.lower()), let_frequency)


@instruction("punctuation:no_comma")
def no_comma(response: str) -> bool:
    """No ASCII comma; the Arabic and the full-width one are none."""
    return "," not in response
