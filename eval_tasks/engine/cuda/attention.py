"""Spans and decoded rows on a GPU in, their attention out: a few launches a layer, however many sequences there are.

Where each position's key and value are, in which cache or in which row of this forward, is laid down in tables before
the first layer. So spans that share a cache are attended to at once, though each writes over what one before it left.
Caches stay as they are until all have read them. See `attention_kernels` for why neighbours cannot matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_tasks.engine.cuda import aligned, interpreted

if TYPE_CHECKING:
    import numpy as np
    import torch

    from eval_tasks.engine.attention import Form, Span

# Positions whose keys one program of a decoded row goes through.
SPLIT = 512
_LEAST_ROWS = 16
_WIDE_HEAD = 128
_ROOMY = 160 * 1024


class Shape(NamedTuple):
    """What the kernels are compiled for: functions of the model, of no forward."""

    groups: int
    repeats: int
    width: int
    itemsize: int

    @property
    def heads(self) -> dict[str, int]:
        """Arguments of every kernel."""
        return {"groups": self.groups, "width": self.width, "padded_width": max(_LEAST_ROWS, _power_of_two(self.width))}

    @property
    def block_keys(self) -> int:
        """Keys a step."""
        return 32 if self.itemsize == 4 else 64

    @property
    def tile_rows(self) -> int:
        """Rows of a product of a query tile: fewer where they would not fit in a GPU's shared memory."""
        return 32 if self.itemsize == 4 and self.width > _WIDE_HEAD else 64

    @property
    def launch(self) -> dict[str, int]:
        """How a program of products is laid out on the GPU: its loads overlap where there is room for two stages."""
        import torch

        device: Any = None if interpreted() else torch.cuda.get_device_properties()
        roomy = device is not None and device.shared_memory_per_block_optin >= _ROOMY
        return {"num_warps": 4, "num_stages": 2 if roomy and self.itemsize == 2 and self.width <= _WIDE_HEAD else 1}


class PackedTiles:
    """Attention of the spans of a packed forward (`attention.Attend`). Rows that belong to no span come out as zeros.

    `attention.Span` says what a span is; here each cache must be contiguous and on `device`.
    """

    def __init__(self, spans: Sequence[Span], device: torch.device) -> None:
        import numpy as np
        import torch

        self._spans = spans
        self._device = device
        self._blocks: dict[int, torch.Tensor] = {}
        # Per cache the row of this forward that wrote each position last, -1 where none did.
        writers: dict[int, np.ndarray] = {}
        caches: dict[int, torch.Tensor] = {}
        rows: list[tuple[int, ...]] = []
        sources: list[np.ndarray] = []
        entries: list[np.ndarray] = []
        offset = 0
        for span in spans:
            address = span.cache.data_ptr()
            caches[address] = span.cache
            writer = writers.setdefault(address, np.full(span.cache.shape[3], -1, np.int64))
            writer[span.start : span.end] = np.arange(span.row, span.row + span.n)
            known = writer[: span.end].copy()
            rows.append((span.row, span.start, span.n, address, span.cache.shape[3], offset))
            sources.append(known)
            offset += span.end
            if span.keep is not None:
                entries.append(_entries(known, span.keep))
                _copy_older(known, span)
        entries += [_entries(writer, caches[address]) for address, writer in writers.items()]
        self._rows = torch.tensor(rows, dtype=torch.int64).to(device)
        self._sources = torch.from_numpy(np.concatenate(sources)).to(device)
        self._entries = torch.from_numpy(np.concatenate(entries)).to(device)

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """See `attention.Attend`."""
        from eval_tasks.engine.cuda.attention_kernels import tile_kernel

        q, k, v, shape = _by_row(q, k, v)
        padded_repeats = _power_of_two(shape.repeats)
        tile = max(1, shape.tile_rows // padded_repeats)
        blocks = self._blocks_of(tile)
        out = q.new_zeros(q.shape)
        kernel: Any = tile_kernel
        kernel[(blocks.shape[0], shape.groups)](
            q,
            k,
            v,
            out,
            blocks,
            self._rows,
            self._sources,
            layer,
            **_form(form),
            **shape.heads,
            repeats=shape.repeats,
            padded_repeats=padded_repeats,
            tile=tile,
            block_keys=shape.block_keys,
            widen=interpreted(),
            **shape.launch,
        )
        _store(k, v, self._entries, layer, shape)
        return out

    def _blocks_of(self, tile: int) -> torch.Tensor:
        """(span, tile) of every program."""
        import torch

        if tile not in self._blocks:
            blocks = [
                (i, t) for i, span in enumerate(self._spans) for t in range(span.start // tile, -(-span.end // tile))
            ]
            self._blocks[tile] = torch.tensor(blocks, dtype=torch.int64).to(self._device)
        return self._blocks[tile]


class DecodeTable:
    """Where decoded rows are: (row, position, address, capacity) each, on the device. `n_splits` covers the furthest.

    Keeps `caches`: an address keeps nothing alive.
    """

    def __init__(self, table: torch.Tensor, n_splits: int, caches: Sequence[torch.Tensor] = ()) -> None:
        self.table = table
        self.n_splits = n_splits
        self._caches = caches

    @classmethod
    def of(cls, caches: Sequence[torch.Tensor], positions: Sequence[int], device: torch.device) -> DecodeTable:
        """The table of rows that are decoded at `positions`, row r with the r-th of `caches`."""
        import torch

        table = torch.tensor(decode_rows(caches, positions), dtype=torch.int64).to(device)
        return cls(table, splits_for(max(positions)), caches)


def decode_rows(caches: Sequence[torch.Tensor], positions: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The rows of a DecodeTable."""
    pairs = enumerate(zip(caches, positions, strict=True))
    return [(row, position, cache.data_ptr(), cache.shape[3]) for row, (cache, position) in pairs]


def splits_for(position: int) -> int:
    """Splits of keys that a row at `position` sees the last of."""
    return position // SPLIT + 1


class DecodeSplits:
    """Attention of one new position per row of `rows` (`attention.Attend`); rows beyond them come out as zeros."""

    def __init__(self, rows: DecodeTable) -> None:
        self._rows = rows

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form) -> torch.Tensor:
        """See `attention.Attend`."""
        import torch

        from eval_tasks.engine.cuda.attention_kernels import merge_kernel, split_kernel

        q, k, v, shape = _by_row(q, k, v)
        table, n_splits = self._rows.table, self._rows.n_splits
        _store(k, v, table, layer, shape)
        n_rows = table.shape[0]
        padded_repeats = max(_LEAST_ROWS, _power_of_two(shape.repeats))
        parts = (n_rows, shape.groups, n_splits, padded_repeats)
        values = q.new_empty(*parts, shape.width, dtype=torch.float32)
        sums = q.new_empty(*parts, 2, dtype=torch.float32)
        out = q.new_zeros(q.shape)
        sizes = {**shape.heads, "repeats": shape.repeats, "padded_repeats": padded_repeats, "split": SPLIT}
        split: Any = split_kernel
        split[(n_rows, shape.groups, n_splits)](
            q,
            values,
            sums,
            table,
            layer,
            n_splits,
            **_form(form),
            **sizes,
            block_keys=shape.block_keys,
            widen=interpreted(),
            **shape.launch,
        )
        merge: Any = merge_kernel
        merge[(n_rows, shape.groups)](values, sums, table, out, n_splits, window=form.window or 0, **sizes, num_warps=4)
        return out


def _by_row(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Shape]:
    """q, k and v as (rows, heads or groups, width), contiguous."""
    shape = Shape(k.shape[0], q.shape[0] // k.shape[0], q.shape[2], q.element_size())
    q, k, v = (aligned(x.transpose(0, 1)) for x in (q, k, v))
    return q, k, v, shape


def _form(form: Form) -> dict[str, float]:
    return {"scale": form.scale, "window": form.window or 0, "softcap": form.softcap or 0.0}


def _store(k: torch.Tensor, v: torch.Tensor, entries: torch.Tensor, layer: int, shape: Shape) -> None:
    from eval_tasks.engine.cuda.attention_kernels import store_kernel

    kernel: Any = store_kernel
    kernel[(entries.shape[0], shape.groups)](k, v, entries, layer, **shape.heads, num_warps=1)


def _entries(known: np.ndarray, cache: torch.Tensor) -> np.ndarray:
    """What to copy to `cache`: the positions that a row of this forward has."""
    import numpy as np

    at = np.flatnonzero(known >= 0)
    entries = np.empty((len(at), 4), np.int64)
    entries[:, 0], entries[:, 1] = known[at], at
    entries[:, 2], entries[:, 3] = cache.data_ptr(), cache.shape[3]
    return entries


def _copy_older(known: np.ndarray, span: Span) -> None:
    """Copy to `keep`, in all layers, what was in the cache before this forward: the rest is stored layer by layer."""
    n = int((known >= 0).argmax())
    if (known[n:] < 0).any():
        raise RuntimeError("a cache of which this forward wrote a part and not what follows it")
    if span.keep is not None and n:
        span.keep[:, :, :, :n] = span.cache[:, :, :, :n]


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
