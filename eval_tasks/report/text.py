"""Any string in, a string that every rendering can carry out. Knows no markup: escaping is the rendering's own work.

Model outputs hold whatever a model wrote: lone surrogates, control characters, terminal escapes, half a megabyte.
"""

from __future__ import annotations

import re
import unicodedata

from markupsafe import Markup

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """`text` with everything that is not allowed in XML, or steers a terminal or text direction, as U+FFFD."""
    return _UNSAFE.sub(REPLACEMENT, text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, limit: int) -> str:
    """Cleaned, white space folded, at most `limit` characters."""
    return _cut(" ".join(clean(text).split()), limit)


def excerpt(text: str, limit: int) -> str:
    """Cleaned, line breaks kept; a longer text keeps its head and tail and says how much is left out."""
    text = clean(text)
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    return f"{text[:head]}\n[... {len(text) - limit:,} characters left out ...]\n{text[-tail:]}"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    while kept and unicodedata.combining(kept[-1]):
        kept = kept[:-1]
    return kept + "…"


def printed(value: object, limit: int) -> object:
    """A value as a page prints it: text made safe, and cut where it has no business being long; markup as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return excerpt(value, limit) if len(value) > limit else clean(value)
    return value
