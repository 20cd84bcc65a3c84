"""Log-probabilities of a row: the model's own function of its logits, whatever rows are beside it."""

from __future__ import annotations

import math

import pytest

WIDTH, TOKENS = 24, 259


def _head(softcap: float | None = None, **bias: float):
    import torch

    from eval_tasks.engine.head import Head

    weight = torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(0))
    offsets = torch.zeros(TOKENS)
    for token, value in bias.items():
        offsets[int(token[1:])] = value
    return weight, Head(weight, offsets, softcap, most_rows=8)


def _rows(n: int):
    import torch

    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("softcap", [None, 5.0])
def test_logits_are_bounded_before_log_softmax(softcap: float | None) -> None:
    import torch

    weight, head = _head(softcap)
    rows = _rows(19)
    logits = rows.double() @ weight.double().T
    if softcap is not None:
        logits = softcap * (logits / softcap).tanh()
    expected = logits.log_softmax(-1)
    targets = [[i, 258 - i, int(expected[i].argmax())] for i in range(19)]
    for row, found, wanted in zip(expected, head.logprobs_of(rows, targets), targets, strict=True):
        assert [value for value, _ in found] == pytest.approx(row[wanted].tolist(), abs=1e-4)
        assert [is_best for _, is_best in found] == [token == int(row.argmax()) for token in wanted]
    for row, found in zip(expected, head.greedy(rows), strict=True):
        assert found == (int(row.argmax()), pytest.approx(float(row.max()), abs=1e-4))
    assert torch.allclose(torch.tensor(head.rows_of(rows)[18]).double(), expected[18], atol=1e-4)


@pytest.mark.parametrize("softcap", [None, 5.0])
def test_a_row_is_the_same_at_every_place(softcap: float | None) -> None:
    """259 tokens: rows of a block begin at every offset within a vector."""
    import torch

    _, head = _head(softcap)
    row = _rows(1)
    (alone,) = head.rows_of(row)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for place in range(8):
                rows = _rows(8)
                rows[place] = row[0]
                assert head.rows_of(rows)[place].tobytes() == alone.tobytes(), (threads, place)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_logit_that_is_not_finite_is_named_also_where_it_would_be_bounded(
    softcap: float | None, value: float
) -> None:
    _, head = _head(softcap, t7=value)
    assert head.greedy(_rows(3)) == [None] * 3
    assert head.logprobs_of(_rows(3), [[1]] * 3) == [None] * 3
    assert head.rows_of(_rows(2)) == [None, None]


def test_a_bad_row_is_none_and_the_others_are_as_they_were() -> None:
    import torch

    _, head = _head(5.0)
    rows = _rows(5)
    good = head.greedy(rows)
    rows[2, 3] = torch.nan
    assert head.greedy(rows) == [*good[:2], None, *good[3:]]
