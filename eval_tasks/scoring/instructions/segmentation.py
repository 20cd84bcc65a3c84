"""Text -> words and sentences. English Punkt comes from a package: nothing is downloaded, no data folder is read."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_WORD = re.compile(r"\w+")


def count_words(text: str) -> int:
    r"""Runs of ``\w``: "state-of-the-art it's" has 6, "3.14" has 2."""
    return sum(1 for _ in _WORD.finditer(text))


def count_sentences(text: str) -> int:
    """Sentences by English Punkt."""
    return len(_sentence_tokenizer().tokenize(text))


def word_tokens(text: str) -> list[str]:
    """Treebank tokens, sentence by sentence, as NLTK's ``word_tokenize`` gives them."""
    tokenizer = _word_tokenizer()
    return [token for sentence in _sentence_tokenizer().tokenize(text) for token in tokenizer.tokenize(sentence)]


@cache
def _sentence_tokenizer() -> Any:
    # NLTK takes a second to import: only the instructions that segment pay for it.
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt.data import english

    parameters = PunktParameters()
    parameters.abbrev_types = set(english.ABBREV_TYPES)
    parameters.collocations = set(english.COLLOCATIONS)
    parameters.sent_starters = set(english.SENT_STARTERS)
    parameters.ortho_context.update(english.ORTHO_CONTEXT)
    return PunktSentenceTokenizer(parameters)


@cache
def _word_tokenizer() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()
