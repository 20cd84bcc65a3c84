"""Queries, keys and values of one layer in, attention out, in products whose shape is a function of a position alone.

Query tile i (TILE positions) sees the keys of positions [0, TILE (i + 1)) in products of one fixed shape, however many
of its rows are asked for; a decoded row sees the keys up to its own. transformers finds this by name (`ATTENTION`) and
makes no mask for a name it has none for; what to attend to travels with the forward as the keyword argument `attend`.
Knows no tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from eval_tasks.engine.runtime import TILE

if TYPE_CHECKING:
    import torch

ATTENTION = "checkpoint_eval_tile"


@dataclass(frozen=True, slots=True)
class Form:
    """How a layer attends. `window`: positions seen, the own one included, None for all. `softcap`: bound of scores."""

    scale: float
    window: int | None = None
    softcap: float | None = None


class Attend(Protocol):
    """One forward's attention. q is (heads, rows, width), k and v are (key-value heads, rows, width)."""

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """The attended values, (rows, heads, width)."""


def register() -> None:
    """Make `ATTENTION` known to transformers; again is a no-op."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attention_forward)


def _attention_forward(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    attend: Attend,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: object,
) -> tuple[torch.Tensor, None]:
    refuse_mask(attention_mask)
    form = Form(scaling, sliding_window, softcap)
    return attend(module.layer_idx, query[0], key[0], value[0], form)[None], None


def refuse_mask(mask: torch.Tensor | None) -> None:
    """Raise ValueError for a mask: what to attend to is `attend`'s alone."""
    if mask is not None:
        raise ValueError(
            "tile attention was given a mask: this version of transformers calls it otherwise than expected"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Tokens of one sequence within a packed forward: rows [row, row + n) at positions from `start` on.

    `cache` (layers, 2, key-value heads, positions, width) has the keys and values before `start` by the time this
    span's turn comes: from earlier forwards, or from spans before it in this one. Spans may share a cache: each takes
    its turn in every layer, and may write over what an earlier one has left. `keep`: a cache of the same form that is
    to have all of this sequence in the end.
    """

    row: int
    n: int
    start: int
    cache: torch.Tensor
    keep: torch.Tensor | None = None

    @property
    def end(self) -> int:
        """Positions that are known once this span is read."""
        return self.start + self.n

    @property
    def tiles(self) -> range:
        """The query tiles it has rows in."""
        return range(self.start // TILE, -(-self.end // TILE))


class PackedAttention:
    """Attention of the spans of a packed forward. What rows that belong to no span come out as is nobody's."""

    def __init__(self, spans: Sequence[Span], device: torch.device) -> None:
        import torch

        self._spans = spans
        self._scratch = Scratch()
        self._masks: dict[tuple[int, int | None], torch.Tensor | None] = {}
        self._ways: dict[tuple[int, int, int], tuple[torch.Tensor, torch.Tensor]] = {}
        # Where each row goes in the list of all tiles of all spans, and which row each place of a tile is filled with:
        # its own, or any row of the span where it has none.
        places = [0] * (spans[-1].row + spans[-1].n)
        filled: list[int] = []
        for span in spans:
            first = len(filled) + span.start % TILE
            for i in range(span.n):
                places[span.row + i] = first + i
            offset = span.tiles.start * TILE - span.start
            filled += [span.row + min(max(offset + i, 0), span.n - 1) for i in range(len(span.tiles) * TILE)]
        self._places = torch.tensor(places, device=device)
        self._filled = torch.tensor(filled, device=device)

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """See Attend."""
        heads, n_rows, width = q.shape
        groups = k.shape[0]
        repeats = heads // groups
        # The query heads of a group become rows of one product: their keys are read once and never copied.
        there, back = self._ways_of(n_rows, groups, repeats)
        tiled = q.transpose(0, 1).to(self._spans[0].cache.dtype).reshape(-1, width).index_select(0, there)
        tiled = tiled.view(-1, groups, repeats * TILE, width)
        out = tiled.new_empty(tiled.shape)
        tile = 0
        with one_thread():
            for span in self._spans:
                keys, values = _write(span, layer, k, v)
                for i in span.tiles:
                    first = _first_key(i, form.window)
                    self._attend(tiled[tile], keys, values, slice(first, (i + 1) * TILE), form, out[tile])
                    tile += 1
        return out.view(-1, width).index_select(0, back).view(n_rows, heads, width).to(q.dtype)

    def _ways_of(self, n_rows: int, groups: int, repeats: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows (row, head) that the tiles (tile, group, repeat, position) are filled with, and the way back."""
        import torch

        known = self._ways.get((n_rows, groups, repeats))
        if known is None:
            heads = groups * repeats
            by_tile = self._filled.view(-1, 1, TILE) * heads
            there = by_tile + torch.arange(heads, device=by_tile.device)[None, :, None]
            places = torch.cat((self._places, self._places.new_zeros(n_rows - len(self._places))))[:, None]
            of_heads = torch.arange(heads, device=by_tile.device)[None] * TILE
            back = places // TILE * (heads * TILE) + of_heads + places % TILE
            known = self._ways[n_rows, groups, repeats] = there.reshape(-1), back.reshape(-1)
        return known

    def _attend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: slice, form: Form, out: torch.Tensor
    ) -> None:
        """softmax(q k' + mask) v for one tile of one sequence."""
        import torch

        scores = _scores(q, k[:, seen], form, self._scratch)
        mask = self._mask(scores.shape[2], form.window, scores)
        by_row = scores.view(scores.shape[0], -1, TILE, scores.shape[2])
        by_row[..., -mask.shape[1] :] += mask
        torch.bmm(torch.softmax(scores, -1, out=scores), v[:, seen], out=out)

    def _mask(self, n_keys: int, window: int | None, like: torch.Tensor) -> torch.Tensor:
        """(TILE, the last keys that some row may not see): 0 where it may, -inf where not."""
        import torch

        known = self._masks.get((n_keys, window))
        if known is None:
            n = TILE if window is None else n_keys
            row = torch.arange(TILE, device=like.device)[:, None] + n - TILE
            key = torch.arange(n, device=like.device)[None]
            hidden = key > row
            if window is not None:
                hidden |= key <= row - window
            known = like.new_zeros(TILE, n).masked_fill_(hidden, float("-inf"))
            self._masks[n_keys, window] = known
        return known


class DecodeAttention:
    """Attention of one new position per row; row r belongs to the r-th of `caches`, rows beyond are filler."""

    def __init__(self, caches: Sequence[torch.Tensor], positions: Sequence[int]) -> None:
        self._caches = caches
        self._positions = positions
        self._scratch = Scratch()

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """See Attend."""
        import torch

        heads, n_rows, width = q.shape
        groups = k.shape[0]
        dtype = self._caches[0].dtype
        by_row = q.transpose(0, 1).to(dtype).reshape(n_rows, groups, heads // groups, width)
        new = torch.stack((k, v)).to(dtype)
        out = by_row.new_zeros(by_row.shape)
        with one_thread():
            for row, (cache, position) in enumerate(zip(self._caches, self._positions, strict=True)):
                kept = cache[layer]
                kept[:, :, position] = new[:, :, row]
                first = 0 if form.window is None else max(0, position + 1 - form.window)
                keys, values = kept[:, :, first : position + 1]
                scores = _scores(by_row[row], keys, form, self._scratch)
                torch.bmm(torch.softmax(scores, -1, out=scores), values, out=out[row])
        return out.view(n_rows, heads, width).to(q.dtype)


class MixedAttention:
    """Attention of a forward whose first `n_packed` rows are spans and whose others are decoded rows."""

    def __init__(self, packed: Attend, n_packed: int, decoded: Attend) -> None:
        self._packed = packed
        self._n_packed = n_packed
        self._decoded = decoded

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """See Attend."""
        import torch

        n = self._n_packed
        packed = self._packed(layer, q[:, :n], k[:, :n], v[:, :n], form)
        decoded = self._decoded(layer, q[:, n:], k[:, n:], v[:, n:], form)
        return torch.cat((packed, decoded))


class Scratch:
    """Room for one tile's scores at a time: the same pages, again and again, are in the processor's cache."""

    def __init__(self) -> None:
        self._room: torch.Tensor | None = None

    def of(self, like: torch.Tensor, *shape: int) -> torch.Tensor:
        """A tensor of `shape` with anything in it, valid until the next one is asked for."""
        n = math.prod(shape)
        if self._room is None or self._room.numel() < n:
            self._room = like.new_empty(n)
        return self._room[:n].view(shape)


def _scores(q: torch.Tensor, k: torch.Tensor, form: Form, scratch: Scratch) -> torch.Tensor:
    """q k' scaled, and bounded where the layer bounds it."""
    import torch

    scores = scratch.of(q, q.shape[0], q.shape[1], k.shape[1])
    torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=form.scale, out=scores)
    if form.softcap is not None:
        scores.div_(form.softcap).tanh_().mul_(form.softcap)
    return scores


def _first_key(tile: int, window: int | None) -> int:
    """The first key that some row of a tile sees, down to a whole tile."""
    return 0 if window is None else max(0, tile * TILE - window + 1) // TILE * TILE


def _write(span: Span, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Put a span's keys and values in its cache; the cache's keys and values up to the end of its last tile."""
    kept = span.cache[layer]
    rows = slice(span.row, span.row + span.n)
    kept[0, :, span.start : span.end] = k[:, rows]
    kept[1, :, span.start : span.end] = v[:, rows]
    # What an earlier sequence has left here is masked, and a masked NaN would still be a NaN.
    kept[:, :, span.end : span.tiles.stop * TILE] = 0
    if span.keep is not None:
        span.keep[layer][:, :, : span.end] = kept[:, :, : span.end]
    return kept[0], kept[1]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: on two, MKL splits sums over keys between them."""
    import torch

    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
