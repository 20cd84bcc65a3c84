"""`change_case:*`: capitals. No language is detected: the reference's check that the text is English is left out."""

from __future__ import annotations

from eval_tasks.scoring.instructions.registry import count, holds, instruction, relation
from eval_tasks.scoring.instructions.segmentation import word_tokens


@instruction("change_case:english_capital")
def english_capital(response: str) -> bool:
    """Every cased character is a capital, and there is one."""
    return response.isupper()


@instruction("change_case:english_lowercase")
def english_lowercase(response: str) -> bool:
    """Every cased character is lower case, and there is one."""
    return response.islower()


@instruction("change_case:capital_word_frequency", capital_frequency=count, capital_relation=relation)
def capital_word_frequency(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    """Less than, or at least, that many tokens in capitals."""
    found = sum(1 for token in word_tokens(response) if token.isupper())
    return holds(capital_relation, found, capital_frequency)
