"""Attention on a GPU against float64 by hand, and bit for bit across company, tiles, caches and splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

FORMS = [
    {"scale": 0.25},
    {"scale": 0.25, "window": 40},
    {"scale": 0.25, "softcap": 3.0},
    {"scale": 0.25, "window": 3, "softcap": 3.0},
]


@dataclass
class Tokens:
    """Queries, keys and values of one sequence, (heads or groups, positions, width), in one layer of two."""

    q: Any
    k: Any
    v: Any

    def rows(self, rows: slice) -> Tokens:
        return Tokens(self.q[:, rows], self.k[:, rows], self.v[:, rows])

    def expected(self, form: Any) -> Any:
        """(positions, heads, width) in float64."""
        import torch

        repeats = self.q.shape[0] // self.k.shape[0]
        k = self.k.double().repeat_interleave(repeats, 0)
        v = self.v.double().repeat_interleave(repeats, 0)
        scores = self.q.double() @ k.transpose(1, 2) * form.scale
        if form.softcap:
            scores = form.softcap * (scores / form.softcap).tanh()
        n = scores.shape[1]
        behind = torch.arange(n, device=scores.device)[:, None] - torch.arange(n, device=scores.device)
        hidden = behind < 0
        if form.window:
            hidden |= behind >= form.window
        return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(0, 1)


def _tokens(device: str, n: int, *, dtype: str = "float32", heads: int = 4, groups: int = 2, seed: int = 0) -> Tokens:
    import torch

    generator = torch.Generator().manual_seed(seed)
    return Tokens(
        *(torch.randn(h, n, 16, generator=generator).to(device, getattr(torch, dtype)) for h in (heads, groups, groups))
    )


def _together(*parts: Tokens) -> Tokens:
    import torch

    return Tokens(*(torch.cat([getattr(part, name) for part in parts], dim=1) for name in "qkv"))


def _cache(tokens: Tokens, capacity: int) -> Any:
    """Full of NaN: what was not written must not be read."""
    groups, _, width = tokens.k.shape
    return tokens.k.new_full((2, 2, groups, capacity, width), float("nan"))


def _packed(tokens: Tokens, spans: list[Any], form: Any) -> Any:
    from eval_tasks.engine.cuda.attention import PackedTiles

    return PackedTiles(spans, tokens.q.device)(1, tokens.q, tokens.k, tokens.v, form)


@pytest.mark.parametrize(
    ("fields", "heads", "groups"), [(FORMS[0], 4, 2), (FORMS[1], 3, 1), (FORMS[2], 2, 2), (FORMS[3], 4, 2)]
)
def test_packed_attention_is_attention(device, heads: int, groups: int, fields: dict[str, Any]) -> None:
    import torch

    from eval_tasks.engine.attention import Form, Span

    form = Form(**fields)
    one = _tokens(device, 70, heads=heads, groups=groups, seed=1)
    two = _tokens(device, 9, heads=heads, groups=groups, seed=2)
    filler = _tokens(device, 3, heads=heads, groups=groups, seed=3)
    spans = [Span(row=0, n=70, start=0, cache=_cache(one, 96)), Span(row=70, n=9, start=0, cache=_cache(two, 32))]
    found = _packed(_together(one, two, filler), spans, form)
    assert torch.allclose(found[:70].double(), one.expected(form), atol=1e-5)
    assert torch.allclose(found[70:79].double(), two.expected(form), atol=1e-5)
    assert not found[79:].any()
    assert torch.equal(spans[0].cache[1, 0, :, :70], one.k)
    assert torch.equal(spans[0].cache[1, 1, :, :70], one.v)
    assert spans[0].cache[0].isnan().all()
    assert spans[0].cache[1, :, :, 70:].isnan().all()


@pytest.mark.parametrize(("fields", "dtype"), [(FORMS[1], "float32"), (FORMS[0], "bfloat16"), (FORMS[1], "float16")])
def test_where_a_sequence_is_cut_is_no_input(device, fields: dict[str, Any], dtype: str) -> None:
    """Alone and whole; in two forwards; beside another; and as spans that share a cache within one forward."""
    import torch

    from eval_tasks.engine.attention import Form, Span

    form = Form(**fields)
    one = _tokens(device, 75, dtype=dtype, seed=1)
    other = _tokens(device, 40, dtype=dtype, seed=2)
    whole = _packed(one, [Span(row=0, n=75, start=0, cache=_cache(one, 96))], form)
    assert torch.allclose(whole.double(), one.expected(form), atol=1e-5 if dtype == "float32" else 0.03)
    for cut in (1, 33, 64):
        cache = _cache(one, 128)
        first = _packed(one.rows(slice(cut)), [Span(row=0, n=cut, start=0, cache=cache)], form)
        beside = _together(other, one.rows(slice(cut, None)))
        spans = [
            Span(row=0, n=40, start=0, cache=_cache(other, 64)),
            Span(row=40, n=75 - cut, start=cut, cache=cache),
        ]
        rest = _packed(beside, spans, form)[40:]
        assert torch.equal(torch.cat((first, rest)), whole), cut


def test_spans_may_write_over_what_an_earlier_one_left(device) -> None:
    """A prompt, two continuations of it, and another sequence with its first 20 tokens, all in one buffer."""
    import torch

    from eval_tasks.engine.attention import Form, Span

    form = Form(0.25)
    prompt, first, second, third = (_tokens(device, n, seed=n) for n in (50, 5, 7, 11))
    shared, kept = _cache(prompt, 64), _cache(prompt, 96)
    spans = [
        Span(row=0, n=50, start=0, cache=shared),
        Span(row=50, n=5, start=50, cache=shared),
        Span(row=55, n=7, start=50, cache=shared),
        Span(row=62, n=11, start=20, cache=shared, keep=kept),
    ]
    found = _packed(_together(prompt, first, second, third), spans, form)
    for rows, alone in (
        (slice(50, 55), _together(prompt, first)),
        (slice(55, 62), _together(prompt, second)),
        (slice(62, 73), _together(prompt.rows(slice(20)), third)),
    ):
        n = alone.q.shape[1]
        whole = _packed(alone, [Span(row=0, n=n, start=0, cache=_cache(alone, 64))], form)
        assert torch.equal(found[rows], whole[rows.start - rows.stop :])
    expected = _together(prompt.rows(slice(20)), third)
    for cache in (shared, kept):
        assert torch.equal(cache[1, 0, :, :31], expected.k)
        assert torch.equal(cache[1, 1, :, :31], expected.v)


def test_what_a_cache_had_before_goes_to_the_one_that_is_kept(device) -> None:
    import torch

    from eval_tasks.engine.attention import Form, Span

    one = _tokens(device, 45)
    shared, kept = _cache(one, 64), _cache(one, 96)
    _packed(one.rows(slice(30)), [Span(row=0, n=30, start=0, cache=shared)], Form(0.25))
    _packed(one.rows(slice(30, None)), [Span(row=0, n=15, start=30, cache=shared, keep=kept)], Form(0.25))
    assert torch.equal(kept[1, 0, :, :45], one.k)
    assert torch.equal(kept[1, 1, :, :45], one.v)


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [(FORMS[0], "float32"), (FORMS[1], "bfloat16"), (FORMS[2], "float16"), (FORMS[3], "float32")],
)
def test_decoded_rows(device, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], dtype: str) -> None:
    """Right, and the same alone, in company, in a longer cache and with room for more splits than it sees."""
    import torch

    from eval_tasks.engine.attention import Form
    from eval_tasks.engine.cuda import attention

    monkeypatch.setattr(attention, "SPLIT", 64)
    form = Form(**fields)
    lengths = (1, 64, 65, 150)
    sequences = [_tokens(device, n, dtype=dtype, seed=n) for n in lengths]
    new = _together(*(s.rows(slice(-1, None)) for s in sequences))

    def caches(room: int) -> list[Any]:
        found = []
        for s in sequences:
            n = s.k.shape[1] - 1
            cache = _cache(s, n + 1 + room)
            cache[1, 0, :, :n], cache[1, 1, :, :n] = s.k[:, :n], s.v[:, :n]
            found.append(cache)
        return found

    positions = [n - 1 for n in lengths]
    filled = caches(0)
    table = attention.DecodeTable.of(filled, positions, new.q.device)
    assert table.n_splits == 3
    together = attention.DecodeSplits(table)(1, new.q, new.k, new.v, form)
    tolerance = 1e-5 if dtype == "float32" else 0.03
    for row, (sequence, cache) in enumerate(zip(sequences, filled, strict=True)):
        assert torch.allclose(together[row].double(), sequence.expected(form)[-1], atol=tolerance)
        assert torch.equal(cache[1, 0, :, positions[row]], sequence.k[:, -1])
        assert torch.equal(cache[1, 1, :, positions[row]], sequence.v[:, -1])
        one = sequence.rows(slice(-1, None))
        alone = attention.DecodeTable.of([caches(9)[row]], [positions[row]], new.q.device)
        alone.n_splits += 1
        assert torch.equal(attention.DecodeSplits(alone)(1, one.q, one.k, one.v, form)[0], together[row]), row
