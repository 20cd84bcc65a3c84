"""A model as transformers computes it, one sequence at a time: for architectures that the engine was not verified on.

Every token is predicted from a forward over all tokens before it: unpadded, with eager attention, without any cache
or shared prefix. Logits are the model's own, its output layer and log-softmax in float32; stopping, validity and
sampling are the engine's. Slow, and with the engine's bits for no model.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.engine import Engine
from eval_tasks.engine.head import LogProbs, finite_rows
from eval_tasks.engine.likelihood import Found, response_of
from eval_tasks.engine.loading import load_model, own_weights
from eval_tasks.engine.outputs import Item
from eval_tasks.engine.runtime import check_config
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response
from eval_tasks.tokenization import Tokenizer

if TYPE_CHECKING:
    import torch

ATTENTION = "eager"
# Two sequences that differ in their last tokens: what comes before must not notice.
_PROBE_TOKENS = 12
_PROBE_CHANGED = 4
_PROBE_TOLERANCE = 1e-3


class PlainModel(LogProbs):
    """A transformers model; its "hidden rows" are its logits."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.device: torch.device = next(model.parameters()).device
        output = model.get_output_embeddings()
        self.n_tokens = int(output.weight.shape[0])
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        _widen(output)

    def logits(self, ids: Sequence[int], positions: Sequence[int]) -> torch.Tensor:
        """The logits (positions, tokens) in float32 of one sequence at these positions."""
        import torch

        at = torch.tensor(positions, device=self.device)
        kept = {"logits_to_keep": at} if self._keeps_logits else {}
        with torch.inference_mode():
            logits: torch.Tensor = self._model(
                input_ids=torch.tensor([list(ids)], device=self.device), use_cache=False, **kept
            ).logits[0]
        return (logits if kept else logits[at]).float()

    def _blocks(self, hidden: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[bool]]]:
        """One block."""
        yield hidden, finite_rows(hidden)


class ReferenceEngine(Engine):
    """An engine whose every row is a function of its request by being computed alone. Tuning values have no effect."""

    def __init__(
        self, *, config: EngineConfig, tuning: EngineTuning, tokenizer: Tokenizer, model: PlainModel, context: int
    ) -> None:
        self.config = config
        self.tuning = tuning
        self.tokenizer = tokenizer
        self.context = context
        self._model = model

    @property
    def n_embeddings(self) -> int:
        """Rows of the output layer."""
        return self._model.n_tokens

    def _score(self, requests: Sequence[Request]) -> list[Response]:
        return [_scored(self._model, request) for request in requests]

    def _generate(self, requests: Sequence[Request]) -> list[Response]:
        items = [Item(i, request, self.tokenizer, self.context) for i, request in enumerate(requests)]
        return [_written(self._model, item) for item in items]

    def _with(self, config: EngineConfig, tuning: EngineTuning) -> Engine:
        check_config(config, tuning)
        return ReferenceEngine(
            config=config, tuning=tuning, tokenizer=self.tokenizer, model=self._model, context=self.context
        )


def load_plain_model(folder: Path, config: EngineConfig, device: torch.device, vocab_size: int) -> PlainModel:
    """The model in `folder`.

    Raises what `loading.load_model` raises, and CheckpointError ``bidirectional_attention``.
    """
    loaded = load_model(folder, config.dtype, device, vocab_size, attention=ATTENTION)
    own_weights(loaded)
    model = PlainModel(loaded)
    _check_causal(folder, model)
    return model


def _check_causal(folder: Path, model: PlainModel) -> None:
    """Refuse a model whose predictions depend on the tokens that are to be predicted."""
    n_before = _PROBE_TOKENS - _PROBE_CHANGED
    ids = [i % model.n_tokens for i in range(_PROBE_TOKENS)]
    other = ids[:n_before] + ids[:_PROBE_CHANGED]
    positions = range(n_before)
    a, b = model.logits(ids, positions), model.logits(other, positions)
    if not bool(((a - b).abs() <= _PROBE_TOLERANCE * a.abs().max()).logical_or(~a.isfinite()).all()):
        raise CheckpointError(
            "bidirectional_attention",
            f"{folder}: predictions of this model change with the tokens after them; it is no causal language model",
        )


def _scored(model: PlainModel, request: Request) -> Response:
    """Log-probabilities of the continuations; those of one token share the forward of their prompt."""
    began = time.perf_counter()
    found = Found([], [])
    last = len(request.prompt_ids) - 1
    read: dict[tuple[int, ...], torch.Tensor] = {}
    for continuation in request.continuations:
        ids = request.prompt_ids + continuation[:-1]
        if ids not in read:
            read = {ids: model.logits(ids, range(last, len(ids)))}
        values = [v for v in model.logprobs_of(read[ids], [[token] for token in continuation]) if v is not None]
        found.finite &= len(values) == len(continuation)
        found.values.append([value for ((value, _),) in values])
        found.greedy.append(all(is_best for ((_, is_best),) in values))
    found.seconds = time.perf_counter() - began
    return response_of(request, found)


def _written(model: PlainModel, item: Item) -> Response:
    """The outputs of an item, one after the other."""
    began = time.perf_counter()
    for slot in item.slots:
        while not slot.ended:
            ids = [*item.request.prompt_ids, *slot.stopper.ids]
            row = model.logits(ids, [len(ids) - 1])
            if slot.sampler is None:
                slot.take(model.greedy(row)[0])
            else:
                slot.draw(model.rows_of(row)[0])
    item.seconds = time.perf_counter() - began
    return item.response()


def _widen(output: Any) -> None:
    """Compute an output layer in float32; what the model does with its logits after it, it then does in float32."""
    import torch

    weight = output.weight.detach().float()
    bias = getattr(output, "bias", None)
    wide_bias = None if bias is None else bias.detach().float()

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x.float(), weight, wide_bias)

    object.__setattr__(output, "forward", forward)
