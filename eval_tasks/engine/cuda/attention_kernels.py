# mypy: disable-error-code="no-untyped-def,misc,untyped-decorator"
"""Triton kernels of attention over caches that lie anywhere: queries by the tile, decoded rows by fixed splits of keys.

Keys are read in blocks that begin at multiples of `block_keys`, from first to last; which blocks a row goes through
follows its position (its tile's, where it is read in tiles) and the window. A block that is wholly masked for a row
changes none of its bits: its factor is exp(0) and its terms are zeros. Imported where a GPU is used only.

Every address is a multiple of 16 bytes, so that what is compiled is the same for every forward.

A cache is an address and a capacity: (layers, 2, groups, capacity, width), contiguous. q and out are (rows, heads,
width), k and v (rows, groups, width). Rows of a product are (position, head of the group), `padded_repeats` a position.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _fold(
    q,
    k,
    v,
    key,
    position,
    top,
    total,
    values,
    scale: tl.constexpr,
    window: tl.constexpr,
    softcap: tl.constexpr,
    widen: tl.constexpr,
):
    """One more block of keys (width, keys) and values (keys, width) into the running maximum, sum and values."""
    if widen:
        scores = tl.dot(q.to(tl.float32), k.to(tl.float32), input_precision="ieee") * scale
    else:
        scores = tl.dot(q, k, input_precision="ieee") * scale
    if softcap > 0:
        # tanh(x), from the side where exp cannot overflow.
        shrunk = tl.exp(-2.0 * tl.abs(scores / softcap))
        bounded = softcap * (1.0 - shrunk) / (1.0 + shrunk)
        scores = tl.where(scores < 0, -bounded, bounded)
    seen = key[None, :] <= position[:, None]
    if window > 0:
        seen = seen & (key[None, :] > position[:, None] - window)
    scores = tl.where(seen, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, axis=1))
    # A row that has seen no key yet has no maximum to subtract.
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    weights = tl.exp(scores - base[:, None])
    kept = tl.exp(top - base)
    total = total * kept + tl.sum(weights, axis=1)
    weights = weights.to(v.dtype)
    if widen:
        added = tl.dot(weights.to(tl.float32), v.to(tl.float32), input_precision="ieee")
    else:
        added = tl.dot(weights, v, input_precision="ieee")
    return new_top, total, values * kept[:, None] + added


@triton.jit(do_not_specialize=["layer"])
def tile_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    blocks_ptr,
    spans_ptr,
    sources_ptr,
    layer,
    scale: tl.constexpr,
    window: tl.constexpr,
    softcap: tl.constexpr,
    groups: tl.constexpr,
    repeats: tl.constexpr,
    padded_repeats: tl.constexpr,
    width: tl.constexpr,
    padded_width: tl.constexpr,
    tile: tl.constexpr,
    block_keys: tl.constexpr,
    widen: tl.constexpr,
):
    """A tile of query positions of one span, for one group of heads.

    blocks: (span, tile) each. spans: (row, start, n, address, capacity, offset in sources) each. sources: for each
    position up to a span's end the row of this forward that has its key, or -1 for the cache as it was before.
    """
    group = tl.program_id(1)
    span = spans_ptr + tl.load(blocks_ptr + 2 * tl.program_id(0)) * 6
    first_position = tl.load(blocks_ptr + 2 * tl.program_id(0) + 1) * tile
    first_row = tl.load(span)
    start = tl.load(span + 1)
    end = start + tl.load(span + 2)
    cache = tl.multiple_of(tl.load(span + 3).to(tl.pointer_type(k_ptr.dtype.element_ty)), 16)
    capacity = tl.load(span + 4)
    sources = sources_ptr + tl.load(span + 5)
    k_cache = cache + (layer * 2 * groups + group) * capacity * width
    v_cache = k_cache + groups * capacity * width

    member = tl.arange(0, tile * padded_repeats)
    column = tl.arange(0, padded_width)
    inside = column < width
    position = first_position + member // padded_repeats
    head = member % padded_repeats
    real = (position >= start) & (position < end) & (head < repeats)
    place = ((first_row + position - start) * groups * repeats + group * repeats + head) * width
    q = tl.load(q_ptr + place[:, None] + column[None, :], mask=real[:, None] & inside[None, :], other=0.0)

    top = tl.full((tile * padded_repeats,), float("-inf"), tl.float32)
    total = tl.zeros((tile * padded_repeats,), tl.float32)
    values = tl.zeros((tile * padded_repeats, padded_width), tl.float32)
    first_key = first_position * 0
    if window > 0:
        first_key = tl.maximum(first_position - window + 1, 0) // block_keys * block_keys
    for at in range(first_key, first_position + tile, block_keys):
        key = at + tl.arange(0, block_keys)
        source = tl.load(sources + key, mask=key < end, other=-1).to(tl.int64)
        is_new = source >= 0
        is_old = (source < 0) & (key < end)
        new = (source * groups + group) * width
        old = key.to(tl.int64) * width
        k_new = tl.load(k_ptr + new[None, :] + column[:, None], mask=is_new[None, :] & inside[:, None], other=0.0)
        k_old = tl.load(k_cache + old[None, :] + column[:, None], mask=is_old[None, :] & inside[:, None], other=0.0)
        v_new = tl.load(v_ptr + new[:, None] + column[None, :], mask=is_new[:, None] & inside[None, :], other=0.0)
        v_old = tl.load(v_cache + old[:, None] + column[None, :], mask=is_old[:, None] & inside[None, :], other=0.0)
        k = tl.where(is_new[None, :], k_new, k_old)
        v = tl.where(is_new[:, None], v_new, v_old)
        top, total, values = _fold(q, k, v, key, position, top, total, values, scale, window, softcap, widen)
    # Filler rows of a tile have zeros to divide.
    out = values / tl.where(total == 0, 1.0, total)[:, None]
    tl.store(
        out_ptr + place[:, None] + column[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=real[:, None] & inside[None, :],
    )


@triton.jit(do_not_specialize=["layer", "n_splits"])
def split_kernel(
    q_ptr,
    values_ptr,
    sums_ptr,
    rows_ptr,
    layer,
    n_splits,
    scale: tl.constexpr,
    window: tl.constexpr,
    softcap: tl.constexpr,
    groups: tl.constexpr,
    repeats: tl.constexpr,
    padded_repeats: tl.constexpr,
    width: tl.constexpr,
    padded_width: tl.constexpr,
    split: tl.constexpr,
    block_keys: tl.constexpr,
    widen: tl.constexpr,
):
    """One decoded row, one group of heads, the keys of one split of positions: its maximum, sum and values.

    rows: (row, position, address, capacity) each. values is (rows, groups, n_splits, padded_repeats, width), sums the
    same with 2 for the width: maximum and sum. A split that the row does not see is left as it is.
    """
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    index = tl.program_id(2)
    entry = rows_ptr + row * 4
    place = tl.load(entry)
    position = tl.load(entry + 1)
    cache = tl.multiple_of(tl.load(entry + 2).to(tl.pointer_type(q_ptr.dtype.element_ty)), 16)
    capacity = tl.load(entry + 3)
    first_key = position * 0 + index * split
    if window > 0:
        first_key = tl.maximum(first_key, tl.maximum(position - window + 1, 0) // block_keys * block_keys)
    last = tl.minimum((index + 1) * split, position + 1)
    if first_key < last:
        k_cache = cache + (layer * 2 * groups + group) * capacity * width
        v_cache = k_cache + groups * capacity * width
        head = tl.arange(0, padded_repeats)
        column = tl.arange(0, padded_width)
        inside = column < width
        q_place = ((place * groups + group) * repeats + head[:, None]) * width + column[None, :]
        q = tl.load(q_ptr + q_place, mask=(head < repeats)[:, None] & inside[None, :], other=0.0)
        top = tl.full((padded_repeats,), float("-inf"), tl.float32)
        total = tl.zeros((padded_repeats,), tl.float32)
        values = tl.zeros((padded_repeats, padded_width), tl.float32)
        where = tl.zeros((padded_repeats,), tl.int64) + position
        for at in range(first_key, last, block_keys):
            key = at + tl.arange(0, block_keys)
            known = key <= position
            old = key.to(tl.int64) * width
            k = tl.load(k_cache + old[None, :] + column[:, None], mask=known[None, :] & inside[:, None], other=0.0)
            v = tl.load(v_cache + old[:, None] + column[None, :], mask=known[:, None] & inside[None, :], other=0.0)
            top, total, values = _fold(q, k, v, key, where, top, total, values, scale, window, softcap, widen)
        part = ((row * groups + group) * n_splits + index) * padded_repeats + head
        tl.store(sums_ptr + part * 2, top)
        tl.store(sums_ptr + part * 2 + 1, total)
        tl.store(values_ptr + part[:, None] * width + column[None, :], values, mask=inside[None, :])


@triton.jit(do_not_specialize=["n_splits"])
def merge_kernel(
    values_ptr,
    sums_ptr,
    rows_ptr,
    out_ptr,
    n_splits,
    window: tl.constexpr,
    groups: tl.constexpr,
    repeats: tl.constexpr,
    padded_repeats: tl.constexpr,
    width: tl.constexpr,
    padded_width: tl.constexpr,
    split: tl.constexpr,
):
    """The splits of one decoded row and group, from the first that it sees to the last, into its attended values."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    place = tl.load(rows_ptr + row * 4)
    position = tl.load(rows_ptr + row * 4 + 1)
    head = tl.arange(0, padded_repeats)
    column = tl.arange(0, padded_width)
    inside = column < width
    top = tl.full((padded_repeats,), float("-inf"), tl.float32)
    total = tl.zeros((padded_repeats,), tl.float32)
    values = tl.zeros((padded_repeats, padded_width), tl.float32)
    first = position * 0
    if window > 0:
        first = tl.maximum(position - window + 1, 0) // split
    for index in range(first, position // split + 1):
        part = ((row * groups + group) * n_splits + index) * padded_repeats + head
        other_top = tl.load(sums_ptr + part * 2)
        other_total = tl.load(sums_ptr + part * 2 + 1)
        other = tl.load(values_ptr + part[:, None] * width + column[None, :], mask=inside[None, :], other=0.0)
        new_top = tl.maximum(top, other_top)
        kept = tl.exp(top - new_top)
        added = tl.exp(other_top - new_top)
        total = total * kept + other_total * added
        values = values * kept[:, None] + other * added[:, None]
        top = new_top
    out_place = ((place * groups + group) * repeats + head[:, None]) * width + column[None, :]
    out = (values / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_place, out, mask=(head < repeats)[:, None] & inside[None, :])


@triton.jit(do_not_specialize=["layer"])
def store_kernel(
    k_ptr, v_ptr, entries_ptr, layer, groups: tl.constexpr, width: tl.constexpr, padded_width: tl.constexpr
):
    """Copy one row of one group to its place in a cache. entries: (row, position, address, capacity) each."""
    group = tl.program_id(1)
    entry = entries_ptr + tl.program_id(0).to(tl.int64) * 4
    row = tl.load(entry)
    position = tl.load(entry + 1)
    cache = tl.load(entry + 2).to(tl.pointer_type(k_ptr.dtype.element_ty))
    capacity = tl.load(entry + 3)
    column = tl.arange(0, padded_width)
    inside = column < width
    source = (row * groups + group) * width + column
    target = cache + ((layer * 2 * groups + group) * capacity + position) * width + column
    tl.store(target, tl.load(k_ptr + source, mask=inside), mask=inside)
    tl.store(target + groups * capacity * width, tl.load(v_ptr + source, mask=inside), mask=inside)
