"""Keys and values of leading tiles that sequences have in common, kept within a bound, least recently used out first.

A tile's keys and values depend on the tokens up to its end and on nothing else, so a kept tile has the bits that the
full forward would give. Knows no requests; computes through the `Body` it is given.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blake3 import blake3

from eval_tasks.engine.forward import Body, Part
from eval_tasks.engine.runtime import TILE

if TYPE_CHECKING:
    import torch

Chain = tuple[bytes, ...]
"""A leading run of whole tiles: per tile a digest of all tokens up to its end, so equal chains are equal tokens."""


class PrefixCache:
    """Kept tiles of one model, at most `max_bytes` of them."""

    def __init__(self, body: Body, max_bytes: int) -> None:
        self._body = body
        self.tile_bytes = body.tile_bytes
        self.max_tiles = max_bytes // body.tile_bytes
        self._kept: OrderedDict[bytes, torch.Tensor] = OrderedDict()
        self.n_computed_tiles = 0
        self.n_reused_tiles = 0

    @property
    def n_bytes(self) -> int:
        """Size of what is kept."""
        return len(self._kept) * self.tile_bytes

    def prepare(self, wanted: Sequence[tuple[Sequence[int], Chain]]) -> None:
        """Compute and keep the tiles of `wanted` (ids and the chain to have ready), as far as they fit."""
        used: set[bytes] = set()
        for ids, chain in wanted:
            new = [node for node in chain if node not in used]
            if len(used) + len(new) > self.max_tiles:
                continue
            used.update(new)
            self._compute(ids, chain)
            for node in reversed(chain):
                self._kept.move_to_end(node)
        while len(self._kept) > self.max_tiles:
            self._kept.popitem(last=False)

    def past(self, chain: Chain) -> tuple[torch.Tensor, ...]:
        """The kept tiles at the start of `chain`, up to the first that is not kept."""
        n = self.n_kept(chain)
        self.n_reused_tiles += n
        return tuple(self._kept[node] for node in chain[:n])

    def n_kept(self, chain: Chain) -> int:
        """How many tiles at the start of `chain` are kept."""
        return next((i for i, node in enumerate(chain) if node not in self._kept), len(chain))

    def _compute(self, ids: Sequence[int], chain: Chain) -> None:
        start = self.n_kept(chain)
        if start == len(chain):
            return
        keep = self._body.key_values(len(chain))
        past = tuple(self._kept[node] for node in chain[:start])
        self._body.prefill([Part(ids=ids[start * TILE : len(chain) * TILE], past=past, keep=keep)])
        self.n_computed_tiles += len(chain) - start
        for i in range(start, len(chain)):
            self._kept[chain[i]] = keep[:, :, :, i * TILE : (i + 1) * TILE].clone()


def chain_of(ids: Sequence[int], n_tokens: int) -> Chain:
    """The chain of the whole tiles within the first `n_tokens` of `ids`."""
    hasher = blake3()
    chain = []
    for start in range(0, n_tokens - TILE + 1, TILE):
        hasher.update(array("q", ids[start : start + TILE]).tobytes())
        chain.append(hasher.digest())
    return tuple(chain)


def shared_chains(chains: Sequence[Chain]) -> list[Chain]:
    """For each chain its longest start that another one has too."""
    times = Counter(node for chain in chains for node in chain)
    return [chain[: sum(times[node] > 1 for node in chain)] for chain in chains]
