"""Digests: canonical JSON (RFC 8785), and nothing that JSON cannot carry."""

from __future__ import annotations

import io
import math
import re

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from eval_tasks import digests
from eval_tasks.digests import canonical_json, digest_bytes, digest_parts, digest_stream, digest_value, short_id

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def test_blake3_of_nothing_is_the_published_one() -> None:
    assert digest_bytes(b"") == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


def test_canonical_json_is_that_of_rfc_8785() -> None:
    """The example of RFC 8785, section 3.2.2."""
    given_value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical_json(given_value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    keys = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\u00f6": 7}
    order = [int(digit) for digit in re.findall(r":(\d)", canonical_json(keys).decode())]
    assert order == [2, 4, 6, 7, 1, 5, 3]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2**53 + 2, {1, 2}, b"x", {"a": math.nan}, object()])
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not a JSON value"):
        digest_value(value)


@given(values)
def test_order_of_keys_does_not_matter(value: object) -> None:
    def turned(v: object) -> object:
        if isinstance(v, dict):
            return {k: turned(v[k]) for k in reversed(list(v))}
        return [turned(x) for x in v] if isinstance(v, list) else v

    assert digest_value(turned(value)) == digest_value(value)


def test_parts_cannot_run_into_each_other_and_keep_their_order() -> None:
    assert len({digest_parts(p) for p in (["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"], ['a","b'], ["a", "b"])}) == 6


def test_a_stream_is_read_in_chunks_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_CHUNK_BYTES", 7)
    data = bytes(range(256))
    assert digest_stream(io.BytesIO(data)) == (blake3(data).hexdigest(), 256)
    assert digest_stream(io.BytesIO(b"")) == (digest_bytes(b""), 0)


def test_a_short_id_fits_a_kubernetes_label() -> None:
    assert short_id(digest_bytes(b"x")) == digest_bytes(b"x")[:32]
