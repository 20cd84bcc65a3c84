"""A checkpoint's headers and the work that is planned in, whether it fits out: in seconds, before any weight is read.

What counts is memory that the kernel cannot take back: pages of a mapped weights file do not. Knows no tensor's values.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_tasks.checkpoint import read_headers
from eval_tasks.engine.head import rows_at_once
from eval_tasks.engine.linears import is_widened
from eval_tasks.engine.room import Room, room_of
from eval_tasks.engine.runtime import TILE
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig, EngineTuning

_MEBIBYTE = 1024 * 1024
_FLOAT32 = 4
# Measured: what importing the model's code and its first forward take, and what the allocator keeps between forwards.
_RUNTIME_BYTES = 192 * _MEBIBYTE
_PACKED_ROWS = 64  # oneDNN's blocks: a matrix of fewer outputs takes as much as one of so many
_ROW_MULTIPLE = 128
_LEAST = EngineTuning(tokens_per_forward=64, decode_rows=4, prefix_cache_mb=0)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The most that is asked of an engine at once: tokens of a prompt and of what follows it, sequences per call."""

    prompt_tokens: int
    output_tokens: int
    n_sequences: int
    generates: bool

    @property
    def sequence_tokens(self) -> int:
        """The longest sequence."""
        return self.prompt_tokens + self.output_tokens


WEIGHTS_ALONE = Workload(prompt_tokens=1, output_tokens=0, n_sequences=1, generates=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What decides a model's size: widths in elements, weights in bytes as the engine holds them.

    `loading`: bytes beyond `weights` while it is loaded. `converted`: bytes of the weights that are read in another
    dtype than they are stored in: all are in memory before the first is packed, others stay in the mapped file so long.
    """

    weights: int
    loading: int
    converted: int
    n_layers: int
    hidden: int
    widest: int
    query_width: int
    n_heads: int
    cached_width: int
    cached_bytes: int
    n_tokens: int
    window: int | None

    @property
    def position_bytes(self) -> int:
        """Keys and values of one position over all layers."""
        return self.n_layers * 2 * self.cached_width * self.cached_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes by what they are for. `loading` is beyond `weights`, and gone once the engine is loaded."""

    weights: int
    loading: int
    caches: int
    prefixes: int
    activations: int
    runtime: int = _RUNTIME_BYTES

    @property
    def peak(self) -> int:
        """The most at any time."""
        return self.weights + self.runtime + max(self.loading, self.caches + self.prefixes + self.activations)

    def __str__(self) -> str:
        parts = ", ".join(f"{f.name} {amount(getattr(self, f.name))}" for f in dataclasses.fields(self))
        return f"{amount(self.peak)} ({parts})"


def fitted(
    folder: Path,
    config: EngineConfig,
    tuning: EngineTuning,
    workload: Workload = WEIGHTS_ALONE,
    room: Callable[[str], Room] | None = None,
) -> EngineTuning:
    """`tuning`, or the largest below it with which the checkpoint in `folder` and `workload` fit.

    Raises CheckpointError: ``does_not_fit``, with every figure and the way out. What cannot be read is for the loader
    to name.
    """
    import transformers

    read: Any = transformers.AutoConfig.from_pretrained
    try:
        settings = read(folder, trust_remote_code=False, local_files_only=True)
        model = model_of(folder, settings, config)
    except (OSError, ValueError, CheckpointError):
        return tuning
    except AttributeError:
        if config.attention != "reference":
            raise
        return tuning  # an architecture without such sizes, of which nothing is known here
    room = room or room_of
    there = room(config.device)
    if config.tensor_parallel > 1:
        # Each rank has an embedding and a head of its own, and may read all weights: a whole model is the upper bound.
        n_bytes, source = there.n_bytes // config.tensor_parallel, f"{there.source}, for each of the ranks"
        there = Room(n_bytes=n_bytes, source=source)
    need = need_of(model, config, tuning, workload)
    if config.device != "cpu":
        _check_host(folder, model, room("cpu"))
    chosen = _lowered(tuning, there.n_bytes, lambda t: need_of(model, config, t, workload).peak)
    if chosen is None:
        least = need_of(model, config, _at_least(tuning), workload)
        raise CheckpointError(
            "does_not_fit",
            f"{folder}: needs {need}, and {there}; with the least tuning (tokens_per_forward, decode_rows and "
            f"prefix_cache_mb) it still needs {amount(least.peak)}: give the pod {amount(least.peak - there.n_bytes)} "
            f"more, {'' if config.dtype == 'bfloat16' else 'use a smaller dtype, '}or set max_context below "
            f"{workload.sequence_tokens} tokens",
        )
    if chosen != tuning:
        _log.warning(
            "%s needs %s, and %s: decode_rows %d, tokens_per_forward %d and prefix_cache_mb %d are used, which changes "
            "the speed and no result",
            folder.name, need, there, chosen.decode_rows, chosen.tokens_per_forward, chosen.prefix_cache_mb,
        )  # fmt: skip
    else:
        _log.info("%s needs at most %s, and %s", folder.name, need, there)
    return chosen


def model_of(folder: Path, settings: Any, config: EngineConfig) -> Model:
    """The sizes of the checkpoint in `folder`, by its headers and its config. Raises what `read_headers` raises."""
    tensors = {t.name: t for t in read_headers(folder)}
    text = settings.get_text_config() if hasattr(settings, "get_text_config") else settings
    tied = bool(getattr(settings, "tie_word_embeddings", False))
    size = _FLOAT32 if config.dtype == "float32" else 2
    on_cpu = config.device == "cpu"
    packed = _FLOAT32 if on_cpu and is_widened(config.dtype) else size
    weights, converted, widened, transient = 0, 0, 0, 0
    embedding: tuple[int, ...] = (0, 0)
    head: tuple[int, ...] = ()
    widths = [int(text.hidden_size)]
    for name, tensor in tensors.items():
        elements = _elements(tensor.shape)
        if tensor.dtype != _STORED[config.dtype] or ".experts." in name:  # experts are stacked while they are loaded
            converted += elements * size
        if _is_head(name):
            head = tensor.shape
        elif _is_embedding(name):
            weights += elements * size
            embedding = max(embedding, tensor.shape)
            transient = max(transient, elements * size)
        elif len(tensor.shape) in (2, 3):
            held = elements // tensor.shape[-2] * -(-tensor.shape[-2] // _PACKED_ROWS) * _PACKED_ROWS
            weights += (held if on_cpu else elements) * packed
            widened += elements * packed if packed != size else 0
            transient = max(transient, elements * packed if packed != size else elements * size)
            widths += tensor.shape[-2:]
        else:
            weights += elements * size
    head = embedding if tied or not head else head
    head_bytes = _elements(head) * _FLOAT32
    widened_head = 0 if size == _FLOAT32 else head_bytes
    if on_cpu or widened_head or not tied:
        weights += head_bytes
    if on_cpu:
        # Measured: what the float32 copies leave between the packed ones is given back when all are packed.
        loading = max(transient, head_bytes, converted + head_bytes + widened_head - weights) + widened // 2
    else:
        loading = 0 if tied else _elements(head) * size
    n_heads = int(text.num_attention_heads)
    head_width = int(getattr(text, "head_dim", None) or text.hidden_size // n_heads)
    window = getattr(text, "sliding_window", None)
    return Model(
        weights=weights,
        loading=loading,
        converted=converted,
        n_layers=int(text.num_hidden_layers),
        hidden=int(text.hidden_size),
        widest=max(widths),
        query_width=n_heads * head_width,
        n_heads=n_heads,
        cached_width=int(getattr(text, "num_key_value_heads", None) or n_heads) * head_width,
        cached_bytes=_FLOAT32 if on_cpu else size,
        n_tokens=head[0],
        window=window if isinstance(window, int) else None,
    )


def need_of(model: Model, config: EngineConfig, tuning: EngineTuning, workload: Workload) -> Need:
    """What `workload` takes at `tuning`: an upper bound, of the order of what is measured."""
    sequence = _tiles(workload.sequence_tokens) * TILE * model.position_bytes
    prompt = _tiles(workload.prompt_tokens) * TILE * model.position_bytes
    path = prompt if workload.generates else sequence
    caches = 0
    if workload.generates:
        # A cache that grows lives twice for a moment, and that of a prompt waits while its samples find no free row.
        caches = (tuning.decode_rows + 1) * sequence + prompt
        if config.device == "cuda":
            caches += tuning.graph_mb * _MEBIBYTE
    prefixes = path
    if config.prefix == "shared":
        prefixes += max(path, tuning.prefix_cache_mb * _MEBIBYTE)
    return Need(
        weights=model.weights,
        loading=model.loading,
        caches=caches,
        prefixes=prefixes,
        activations=_activations(model, config, tuning, workload),
    )


def amount(n_bytes: int) -> str:
    """Bytes for people: ``312 MiB``, ``1.4 GiB``."""
    mebibytes = n_bytes / _MEBIBYTE
    return f"{mebibytes:,.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:,.1f} GiB"


def _activations(model: Model, config: EngineConfig, tuning: EngineTuning, workload: Workload) -> int:
    """One layer's intermediate values at the largest forward, in float32, and the head's block."""
    if config.attention == "reference":
        return _plain_activations(model, workload)
    n_rows = max(tuning.tokens_per_forward, workload.prompt_tokens if workload.generates else 0)
    rows = -(-n_rows // _ROW_MULTIPLE) * _ROW_MULTIPLE
    tiled = rows + 2 * TILE * min(rows, workload.n_sequences)
    keys = _tiles(workload.sequence_tokens) * TILE
    stream = 6 * rows * model.hidden
    mlp = 4 * rows * model.widest
    attention = 3 * rows * (model.query_width + 2 * model.cached_width) + 4 * tiled * model.query_width
    scores = 2 * model.n_heads * TILE * keys
    masks = keys * keys if model.window is not None else keys * TILE
    head = 3 * rows_at_once(model.n_tokens) * model.n_tokens + 2 * rows * model.hidden
    return _FLOAT32 * (stream + max(mlp, attention + scores) + masks + head)


def _check_host(folder: Path, model: Model, host: Room) -> None:
    """On a GPU, weights in another dtype pass through the host's memory."""
    need = model.converted + _RUNTIME_BYTES
    if need > host.n_bytes:
        raise CheckpointError(
            "does_not_fit",
            f"{folder}: converting its weights takes {amount(need)} of the host's memory, and {host}; give the pod "
            "more, or use the dtype that the weights are stored in",
        )


def _lowered(tuning: EngineTuning, n_bytes: int, peak: Callable[[EngineTuning], int]) -> EngineTuning | None:
    """The tuning that fits, halving each time the value that saves most; None when none does."""
    while peak(tuning) > n_bytes:
        best = min(_halved(tuning), key=peak, default=None)
        if best is None or peak(best) >= peak(tuning):
            return None
        tuning = best
    return tuning


def _halved(tuning: EngineTuning) -> Iterator[EngineTuning]:
    for name, least in dataclasses.asdict(_LEAST).items():
        value = getattr(tuning, name)
        if value > least:
            yield dataclasses.replace(tuning, **{name: max(least, value // 2)})


def _at_least(tuning: EngineTuning) -> EngineTuning:
    least: Mapping[str, int] = dataclasses.asdict(_LEAST)
    return EngineTuning(**{name: min(value, getattr(tuning, name)) for name, value in least.items()})


def _plain_activations(model: Model, workload: Workload) -> int:
    """One layer of transformers' own forward over the longest sequence, with all its scores, and all its logits."""
    rows = workload.sequence_tokens
    layer = rows * (8 * model.hidden + 4 * model.widest) + 3 * model.n_heads * rows * rows
    return _FLOAT32 * (layer + 3 * rows * model.n_tokens)


_STORED = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


def _is_head(name: str) -> bool:
    return name.startswith(("lm_head.", "embed_out.")) and name.endswith("weight")


def _is_embedding(name: str) -> bool:
    return any(part in name for part in ("embed", "wte", "wpe"))


def _elements(shape: tuple[int, ...]) -> int:
    n = 1
    for width in shape:
        n *= width
    return n


def _tiles(n_tokens: int) -> int:
    return -(-n_tokens // TILE)
