from hypothesis import given
from hypothesis import strategies as st

from eval_tasks.report.text import REPLACEMENT, clean, excerpt, one_line

_ANY = st.text(alphabet=st.characters(exclude_categories=()))


@given(_ANY)
def test_clean_text_can_be_encoded_and_steers_nothing(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
    assert clean(cleaned) == cleaned


def test_surrogates_escapes_and_direction_marks_become_replacement_characters() -> None:
    assert clean("a\ud800b\x1b[31mc\u202ed\x00") == f"a{REPLACEMENT}b{REPLACEMENT}[31mc{REPLACEMENT}d{REPLACEMENT}"
    assert clean("one\r\ntwo\rthree") == "one\ntwo\nthree"


@given(_ANY, st.integers(min_value=1, max_value=40))
def test_one_line_is_one_line_and_short(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_an_excerpt_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "a" * 600 + "b" * 300
    shown = excerpt(text, 90)
    assert shown.startswith("a" * 60)
    assert shown.endswith("b" * 30)
    assert "810 characters left out" in shown
    assert excerpt("short", 90) == "short"
