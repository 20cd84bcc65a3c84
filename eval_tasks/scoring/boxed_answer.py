r"""A solution in LaTeX -> the number in its last ``\boxed{...}``, exactly. Knows no item and no gold answer.

Models that were trained on mathematics end in ``\boxed{18}`` instead of ``#### 18``. The braces are matched, so that
``\boxed{\frac{1}{2}}`` is one half; text in ``\text{...}``, thin spaces, dollars and thousands marks are passed over.
"""

from __future__ import annotations

import re
from fractions import Fraction

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_WORDS = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{[^{}]*\}")
_SPACING = re.compile(r"\\[,!;: ]|\{,\}|\\?[$%]|~")
_FRACTION = re.compile(r"(-?)\s*\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}")
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)")

_LONGEST = 1000
"""No answer is as long as this; Python refuses to read a number of more than 4,300 digits."""


def last_box(text: str) -> str | None:
    r"""What stands in the last ``\boxed{...}`` whose braces are closed; None when there is none."""
    for opened in reversed(list(_BOX.finditer(text))):
        depth, start = 1, opened.end()
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 0:
                return text[start:at]
    return None


def boxed_number(content: str) -> Fraction | None:
    """The last number of a box's content, None when it holds none."""
    plain = _SPACING.sub("", _WORDS.sub(" ", content.replace("\u2212", "-")))
    if len(plain) > _LONGEST:
        return None
    fractions = list(_FRACTION.finditer(plain))
    if fractions and int(fractions[-1].group(3)):
        sign, numerator, denominator = fractions[-1].groups()
        value = Fraction(int(numerator), int(denominator))
        return -value if sign else value
    found = _NUMBER.findall(plain)
    return Fraction(found[-1].replace(",", "")) if found else None
