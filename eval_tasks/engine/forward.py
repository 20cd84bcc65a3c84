"""Token ids in tiles in, final hidden states out: the body of a model, run in shapes that cannot matter.

A forward is a list of tiles of 64 positions, of any sequences in any order, so that linear layers see a multiple of
64 rows and nothing is padded to a neighbour's length. Positions are explicit; the last tile is filled up with the
sequence's own last token, at positions that nothing before them can see. Knows no requests and no head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.attention import Attend, CausalMask, DecodeAttention, PrefillAttention, Span
from eval_tasks.engine.linears import MIN_ROWS
from eval_tasks.engine.runtime import TILE

if TYPE_CHECKING:
    import torch

# Two threads share an element-wise operation in halves, and each half is done 64 elements at a time with another
# instruction for the rest: a multiple of 128 elements leaves no rest at any row.
_ELEMENTS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A sequence's tokens that are still to be computed, after the tiles of `past`; see Span for `past` and `keep`."""

    ids: Sequence[int]
    past: tuple[torch.Tensor, ...] = ()
    keep: torch.Tensor | None = None

    @property
    def n_tiles(self) -> int:
        """Tiles that `ids` fill, the last one perhaps in part."""
        return n_tiles(len(self.ids))


def n_tiles(n_tokens: int) -> int:
    """Tiles that so many tokens fill."""
    return -(-n_tokens // TILE)


class Body:
    """A model without its output head. `widths`: the sizes of its activations' last dimension.

    `positions`: how many it has; filler beyond the last one stays on it.
    """

    def __init__(self, base: Any, config: Any, *, widths: Sequence[int], positions: int) -> None:
        parameter = next(p for p in base.parameters() if p.numel())
        self.dtype: torch.dtype = parameter.dtype
        self.device: torch.device = parameter.device
        self._base = base
        self._last_position = positions - 1
        self._mask = CausalMask(self.dtype, self.device)
        self._n_layers = int(config.num_hidden_layers)
        self._n_groups = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._head_width = int(width)
        # With an odd width the halves of two threads would end within a run of elements.
        self.max_threads = 1 if any(w % 2 for w in widths) else 2
        self.row_multiple = math.lcm(
            MIN_ROWS, *(_ELEMENTS // math.gcd(_ELEMENTS, w) for w in (*widths, self._head_width))
        )

    def key_values(self, tiles: int) -> torch.Tensor:
        """Room for the keys and values of so many tiles, zero: a masked NaN would still be a NaN."""
        import torch

        shape = (self._n_layers, 2, self._n_groups, tiles * TILE, self._head_width)
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    @property
    def tile_bytes(self) -> int:
        """Size of one tile's keys and values over all layers."""
        return self._n_layers * 2 * self._n_groups * TILE * self._head_width * self.dtype.itemsize

    def prefill(self, parts: Sequence[Part]) -> list[torch.Tensor]:
        """The final hidden states of each part's tokens, (its tokens, width), in one forward."""
        tokens: list[list[int]] = []
        positions: list[list[int]] = []
        spans: list[Span] = []
        for part in parts:
            start = len(part.past) * TILE
            spans.append(Span(first=len(tokens), n_tiles=part.n_tiles, past=part.past, keep=part.keep))
            filled = [*part.ids, *[part.ids[-1]] * (part.n_tiles * TILE - len(part.ids))]
            for offset in range(0, len(filled), TILE):
                tokens.append(filled[offset : offset + TILE])
                places = range(start + offset, start + offset + TILE)
                positions.append([min(place, self._last_position) for place in places])
        hidden = self._run(tokens, positions, PrefillAttention(spans, self._mask))
        flat = hidden.reshape(-1, hidden.shape[-1])
        return [flat[s.first * TILE : s.first * TILE + len(p.ids)] for s, p in zip(spans, parts, strict=True)]

    def decode(self, ids: Sequence[int], positions: Sequence[int], caches: Sequence[torch.Tensor]) -> torch.Tensor:
        """The final hidden state of one more token per sequence, (rows, width); its keys and values go to `caches`."""
        n = len(ids)
        filler = -n % self.row_multiple
        tokens = [[i] for i in (*ids, *[ids[-1]] * filler)]
        places = [[p] for p in (*positions, *[positions[-1]] * filler)]
        return self._run(tokens, places, DecodeAttention(caches, positions, self._mask))[:n, 0]

    def _run(self, tokens: list[list[int]], positions: list[list[int]], tiles: Attend) -> torch.Tensor:
        import torch

        with torch.inference_mode(), _one_kernel(self.device):
            hidden: torch.Tensor = self._base(
                input_ids=torch.tensor(tokens, device=self.device),
                position_ids=torch.tensor(positions, device=self.device),
                use_cache=False,
                tiles=tiles,
            ).last_hidden_state
        return hidden


@contextmanager
def _one_kernel(device: torch.device) -> Iterator[None]:
    """One attention kernel: on CPU the blocked one, on CUDA plain matrix products (the others refuse a mask)."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION if device.type == "cpu" else SDPBackend.MATH):
        yield
