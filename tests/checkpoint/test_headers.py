from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_tasks.checkpoint import REASONS, Problem
from eval_tasks.checkpoint.headers import Tensor, header_bytes, parse_header

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={"dtype": JSON | st.sampled_from(["F32", "BF16", "I8"]), "shape": JSON, "data_offsets": JSON},
)


def _file(header: object) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


@settings(max_examples=300, deadline=None)
@given(header=JSON | st.dictionaries(st.text(max_size=4), ENTRY | JSON, max_size=3), extra=st.integers(0, 64))
def test_whatever_a_header_holds_it_is_read_or_named(header: object, extra: int) -> None:
    data = _file(header)
    found = parse_header("f", data, len(data) + extra)
    if isinstance(found, Problem):
        assert found.reason in REASONS
    else:
        assert found[-1].end == len(data) + extra


@settings(max_examples=100, deadline=None)
@given(junk=st.binary(min_size=8, max_size=200))
def test_bytes_that_are_no_header_are_named(junk: bytes) -> None:
    found = parse_header("f", junk, len(junk))
    assert isinstance(found, Problem) or found[-1].end == len(junk)


def test_tensors_come_in_the_order_of_their_bytes_with_offsets_in_the_file() -> None:
    data = _file(
        {
            "__metadata__": {"format": "pt"},
            "b": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [4, 12]},
            "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
            "empty": {"dtype": "I64", "shape": [0, 3], "data_offsets": [12, 12]},
        }
    )
    start = 8 + header_bytes(data)
    assert parse_header("f", data, start + 12) == (
        Tensor(name="a", dtype="F32", shape=(), begin=start, end=start + 4),
        Tensor(name="b", dtype="BF16", shape=(2, 2), begin=start + 4, end=start + 12),
        Tensor(name="empty", dtype="I64", shape=(0, 3), begin=start + 12, end=start + 12),
    )


@pytest.mark.parametrize(("difference", "reason"), [(-1, "truncated"), (1, "over_long"), (-12, "truncated")])
def test_the_size_must_be_exact(difference: int, reason: str) -> None:
    data = _file({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})
    found = parse_header("f", data, len(data) + 12 + difference)
    assert isinstance(found, Problem)
    assert found.reason == reason
