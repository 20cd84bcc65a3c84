"""Queries, keys and values of one layer in, attention out, in calls whose shape is a function of the item alone.

Query tile i (64 rows) sees the keys of positions [0, 64 (i + 1)) in one call of one sequence. A decoded row sees the
whole tiles up to its own. transformers finds this by name (`ATTENTION`) and makes no mask for a name it has none for;
what to attend to travels with the forward as the keyword argument `tiles`. Knows no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from eval_tasks.engine.runtime import TILE

if TYPE_CHECKING:
    import torch

ATTENTION = "checkpoint_eval_tile"


class Attend(Protocol):
    """One forward's attention. q is (rows, heads, positions, width), k and v have the key-value heads."""

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """The attended values, shaped as q."""


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
    tiles: Attend,
    **_: object,
) -> tuple[torch.Tensor, None]:
    if attention_mask is not None:
        raise ValueError(
            "tile attention was given a mask: this version of transformers calls it otherwise than expected"
        )
    return tiles(module.layer_idx, query, key, value, scaling).transpose(1, 2), None


class CausalMask:
    """The additive causal masks of all tiles, as views of one buffer that grows with the longest sequence seen."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        import torch

        tile = torch.full((TILE, TILE), float("-inf"), dtype=dtype, device=device)
        self._last = tile.triu(1)
        self._columns = 0
        self._by_repeats: dict[int, torch.Tensor] = {}

    def of_tile(self, tile: int, repeats: int) -> torch.Tensor:
        """(repeats * 64, 64 (tile + 1)): what the rows of a query tile may not see, once per query head of a group."""
        end = (tile + 1) * TILE
        if end > self._columns:
            self._columns = max(2 * self._columns, end)
            self._by_repeats.clear()
        if repeats not in self._by_repeats:
            mask = self._last.new_zeros(TILE, self._columns)
            mask[:, -TILE:] = self._last
            self._by_repeats[repeats] = mask.repeat(repeats, 1)
        return self._by_repeats[repeats][:, self._columns - end :]

    def of_position(self, position: int, repeats: int) -> torch.Tensor:
        """(repeats, whole tiles up to `position`): what a decoded row may not see."""
        row = position % TILE
        return self.of_tile(position // TILE, 1)[row : row + 1].expand(repeats, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One sequence's new tiles within a packed forward.

    `past`: keys and values of the tiles before them, each (layers, 2, heads, 64, width). `keep`: where keys and values
    of past and new tiles are to be kept, (layers, 2, heads, positions, width), None for nowhere.
    """

    first: int
    n_tiles: int
    past: tuple[torch.Tensor, ...] = ()
    keep: torch.Tensor | None = None


class PrefillAttention:
    """Attention of packed tiles: row r of the forward is one tile of one span."""

    def __init__(self, spans: Sequence[Span], mask: CausalMask) -> None:
        self._spans = spans
        self._mask = mask

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """See Attend."""
        rows, heads, _, width = q.shape
        groups = k.shape[1]
        repeats = heads // groups
        # The query heads of a group become rows of one call: their keys are then read once, and never copied.
        q = q.reshape(rows, groups, repeats * TILE, width)
        out = q.new_empty(q.shape)
        for span in self._spans:
            keys, values = _gather(span, layer, k, v)
            for j in range(span.n_tiles):
                row = span.first + j
                tile = len(span.past) + j
                end = (tile + 1) * TILE
                out[row] = _attend(q[row], keys[:, :end], values[:, :end], self._mask.of_tile(tile, repeats), scale)
        return out.view(rows, heads, TILE, width)


class DecodeAttention:
    """Attention of one new position per row; row r belongs to the r-th of `caches`, rows beyond are filler."""

    def __init__(self, caches: Sequence[torch.Tensor], positions: Sequence[int], mask: CausalMask) -> None:
        self._caches = caches
        self._positions = positions
        self._mask = mask

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """See Attend."""
        rows, heads, _, width = q.shape
        groups = k.shape[1]
        repeats = heads // groups
        q = q.reshape(rows, groups, repeats, width)
        out = q.new_zeros(q.shape)
        for row, (cache, position) in enumerate(zip(self._caches, self._positions, strict=True)):
            kept = cache[layer]
            kept[0, :, position] = k[row, :, 0]
            kept[1, :, position] = v[row, :, 0]
            end = (position // TILE + 1) * TILE
            out[row] = _attend(
                q[row], kept[0, :, :end], kept[1, :, :end], self._mask.of_position(position, repeats), scale
            )
        return out.view(rows, heads, 1, width)


def _gather(span: Span, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of a span, past ones first, each (heads, positions, width)."""
    new = slice(span.first, span.first + span.n_tiles)
    start = len(span.past) * TILE
    end = start + span.n_tiles * TILE
    if span.keep is not None:
        kept = span.keep[layer]
    elif span.past or span.n_tiles > 1:
        kept = k.new_empty(2, k.shape[1], end, k.shape[3])
    else:
        return k[span.first], v[span.first]
    for j, tile in enumerate(span.past):
        kept[:, :, j * TILE : (j + 1) * TILE] = tile[layer]
    for side, tensor in enumerate((k, v)):
        kept[side, :, start:end].view(k.shape[1], span.n_tiles, TILE, k.shape[3]).copy_(tensor[new].transpose(0, 1))
    return kept[0], kept[1]


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """softmax(q k' scale + mask) v for one sequence, by the one kernel that is pinned for its device."""
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, scale=scale)[0]
