"""Token ids in, final hidden states out: the body of a model, over rows that know nothing of one another.

A forward is a packed list of tokens, of any sequences in any order, so nothing is padded to a neighbour's length:
linear layers give a row the same bits at any number of rows, and attention is one product per tile of a sequence.
Positions are explicit. Knows no requests and no head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_tasks.engine import cuda
from eval_tasks.engine.attention import Attend, DecodeAttention, MixedAttention, PackedAttention, Span
from eval_tasks.engine.experts import has_experts
from eval_tasks.engine.linears import ELEMENTS, MIN_ROWS
from eval_tasks.engine.runtime import TILE

if TYPE_CHECKING:
    import torch

    from eval_tasks.engine.cuda.graphs import DecodeGraphs


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Tokens of one sequence at positions from `start` on; see Span for `cache` and `keep`."""

    ids: Sequence[int]
    start: int
    cache: torch.Tensor
    keep: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """One token that was written, at its position; `cache` has all before it."""

    id: int
    position: int
    cache: torch.Tensor


def room_for(n_tokens: int) -> int:
    """Positions of a cache that holds so many tokens: whole tiles."""
    return -(-n_tokens // TILE) * TILE


class Body:
    """A model without its output head. `widths`: the sizes of its activations' last dimension. `degree`: how many ranks
    share its heads.
    """

    def __init__(self, base: Any, config: Any, *, widths: Sequence[int], degree: int = 1) -> None:
        import torch

        parameter = next(p for p in base.parameters() if p.numel())
        self.device: torch.device = parameter.device
        self._uses_kernels = cuda.uses_kernels(self.device)
        # On CPU keys and values are float32 whatever the model is: small products in bfloat16 are slower there.
        self.cache_dtype: torch.dtype = parameter.dtype if self._uses_kernels else torch.float32
        self._base = base
        self._n_layers = int(config.num_hidden_layers)
        self._n_groups = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads) // degree
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._head_width = int(width)
        # With an odd width the halves of two threads would end within a run of elements.
        self.max_threads = 1 if any(w % 2 for w in widths) else 2
        self.row_multiple = math.lcm(
            MIN_ROWS, *(ELEMENTS // math.gcd(ELEMENTS, w) for w in (*widths, self._head_width))
        )
        self.graphs: DecodeGraphs | None = None
        # Which experts are needed is read back in every layer: nothing that could be recorded.
        if self.device.type == "cuda" and not has_experts(base):
            from eval_tasks.engine.cuda.graphs import cuda_graphs

            self.graphs = cuda_graphs(self._hidden, self.key_values(TILE))

    def key_values(self, positions: int) -> torch.Tensor:
        """Room for the keys and values of so many positions. None is read before it was written."""
        import torch

        shape = (self._n_layers, 2, self._n_groups, positions, self._head_width)
        return torch.empty(shape, dtype=self.cache_dtype, device=self.device)

    @property
    def position_bytes(self) -> int:
        """Size of one position's keys and values over all layers."""
        return self._n_layers * 2 * self._n_groups * self._head_width * self.cache_dtype.itemsize

    def forward(
        self, parts: Sequence[Part], decoded: Sequence[Decoded] = (), *, graph_bytes: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One forward: the final hidden states of the parts' tokens, part after part, and those of the decoded ones.

        Both are (tokens, width). The decoded tokens' keys and values go to their caches.
        On a GPU, forwards without parts may be recorded within `graph_bytes` and replayed.
        """
        if self.graphs is not None and not parts:
            replayed = self.graphs(decoded, graph_bytes)
            if replayed is not None:
                return replayed[:0], replayed
        spans: list[Span] = []
        ids: list[int] = []
        positions: list[int] = []
        for part in parts:
            n = len(part.ids)
            spans.append(Span(row=len(ids), n=n, start=part.start, cache=part.cache, keep=part.keep))
            ids += part.ids
            positions += range(part.start, part.start + n)
        n_read = len(ids)
        ids += [token.id for token in decoded]
        positions += [token.position for token in decoded]
        hidden = self._run(ids, positions, self._attend(spans, n_read, decoded))
        return hidden[:n_read], hidden[n_read:]

    def _attend(self, spans: Sequence[Span], n_read: int, decoded: Sequence[Decoded]) -> Attend:
        caches, positions = [t.cache for t in decoded], [t.position for t in decoded]
        packed: Attend
        decode: Attend
        if self._uses_kernels:
            from eval_tasks.engine.cuda.attention import DecodeSplits, DecodeTable, PackedTiles

            if decoded:
                decode = DecodeSplits(DecodeTable.of(caches, positions, self.device))
            if spans:
                packed = PackedTiles(spans, self.device)
        else:
            decode = DecodeAttention(caches, positions)
            if spans:
                packed = PackedAttention(spans, self.device)
        if not spans:
            return decode
        return MixedAttention(packed, n_read, decode) if decoded else packed

    def _run(self, ids: Sequence[int], positions: Sequence[int], attend: Attend) -> torch.Tensor:
        import torch

        filler = -len(ids) % self.row_multiple
        hidden = self._hidden(
            torch.tensor([[*ids, *[ids[-1]] * filler]], device=self.device),
            torch.tensor([[*positions, *[positions[-1]] * filler]], device=self.device),
            attend,
        )
        return hidden[: len(ids)]

    def _hidden(self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Final hidden states (rows, width) of ids at positions, both (1, rows)."""
        import torch

        with torch.inference_mode():
            hidden: torch.Tensor = self._base(
                input_ids=ids, position_ids=positions, use_cache=False, attend=attend
            ).last_hidden_state
        return hidden[0]
