"""Token sequences in, the keys and values they have in common with what was read before out, within a bound.

A path is one buffer with the keys and values of one run of tokens. The next sequence that starts like it goes on where
the two part, and writes over the rest: in sorted order, as one walks a tree, nothing shared is read twice. A position's
keys and values depend on the tokens up to it and on nothing else, so they have the bits that the full forward would
give. Knows no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.engine.forward import Body, room_for

if TYPE_CHECKING:
    import torch

# With fewer tokens in common, a sequence begins a path of its own instead of ending one that others may go on with.
_MIN_COMMON = 32


class Path:
    """One run of tokens: `ids`, and room for their keys and values in `cache`."""

    def __init__(self, cache: torch.Tensor) -> None:
        self.cache = cache
        self.ids: tuple[int, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Size of the buffer."""
        return self.cache.numel() * self.cache.element_size()

    def common(self, ids: Sequence[int]) -> int:
        """How many leading tokens of `ids` this path has."""
        longest = min(len(ids), len(self.ids))
        if self.ids[:longest] == tuple(ids[:longest]):
            return longest
        return next(i for i in range(longest) if ids[i] != self.ids[i])


class PrefixPaths:
    """The paths of one model, least recently used out first; `max_bytes` holds between two calls.

    With `shared` false every sequence is read from its first token, in a buffer that is used again.
    """

    def __init__(self, body: Body, max_bytes: int, *, shared: bool) -> None:
        self.shared = shared
        self._body = body
        self._max_bytes = max_bytes
        self._paths: list[Path] = []
        self._room = 0
        self.n_read_tokens = 0
        self.n_reused_tokens = 0

    @property
    def n_bytes(self) -> int:
        """Size of what is kept."""
        return sum(path.n_bytes for path in self._paths)

    def order(self, sequences: Sequence[Sequence[int]]) -> list[int]:
        """Indices of `sequences` in the order to enter them: those with a common start together, kept paths first.

        None but these may be entered until the next call of `order`.
        """
        self._room = room_for(max(map(len, sequences), default=0))

        def key(index: int) -> tuple[bool, tuple[int, ...]]:
            ids = tuple(sequences[index])
            return not any(path.common(ids) >= _MIN_COMMON for path in self._paths), ids

        return sorted(range(len(sequences)), key=key)

    def enter(self, ids: Sequence[int], needed: int) -> tuple[torch.Tensor, int]:
        """The buffer to read `ids` in, and where to begin: before `needed`, a position whose hidden state is wanted.

        From here on the path is that of `ids`: the caller reads all of them before it enters another sequence.
        """
        path = self._choose(ids)
        start = min(path.common(ids), needed) if self.shared else 0
        path.ids = tuple(ids)
        self.n_reused_tokens += start
        self.n_read_tokens += len(ids) - start
        return path.cache, start

    def trim(self) -> None:
        """Drop the least recently used paths that are beyond the bound."""
        self._make_room()

    def clear(self) -> None:
        """Forget every path: some may name tokens that were never read."""
        self._paths.clear()

    def _choose(self, ids: Sequence[int]) -> Path:
        """The path that shares most with `ids`, or a new one; it comes last."""
        best = max(self._paths, key=lambda path: path.common(ids), default=None)
        if best is None or (self.shared and best.common(ids) < _MIN_COMMON):
            return self._new()
        self._paths.remove(best)
        self._paths.append(best)
        # Only where a path is first entered since `order`: nothing that is to be read refers to the narrower buffer.
        known = best.cache.shape[3]
        if known < self._room:
            wider = self._body.key_values(self._room)
            wider[:, :, :, :known] = best.cache
            best.cache = wider
            self._make_room(keep=1)
        return best

    def _new(self) -> Path:
        self._make_room(self._room * self._body.position_bytes)
        path = Path(self._body.key_values(self._room))
        self._paths.append(path)
        return path

    def _make_room(self, n_bytes: int = 0, *, keep: int = 0) -> None:
        """Drop the least recently used paths until `n_bytes` more fit, but never the last `keep`."""
        while len(self._paths) > keep and self.n_bytes + n_bytes > self._max_bytes:
            self._paths.pop(0)
