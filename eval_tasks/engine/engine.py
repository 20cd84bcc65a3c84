"""Requests in, responses out: `load_engine` makes an engine from a checkpoint's folder, `Engine.respond` runs it.

A response is a function of its request, the checkpoint, the EngineConfig and the environment; of no companion, order,
batch, cache or tuning value. Knows no storage, no benchmark and no gold answer.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.engine import cuda
from eval_tasks.engine.allocator import give_back, keep_freed
from eval_tasks.engine.architectures import check_architecture, check_reference_architecture
from eval_tasks.engine.experts import pin_experts
from eval_tasks.engine.forward import Body
from eval_tasks.engine.generation import Generator
from eval_tasks.engine.head import Head
from eval_tasks.engine.layers import pin_layers
from eval_tasks.engine.likelihood import score
from eval_tasks.engine.linears import pin_linears
from eval_tasks.engine.loading import load_model, own_weights
from eval_tasks.engine.memory import WEIGHTS_ALONE, Workload, fitted
from eval_tasks.engine.prefix import PrefixPaths
from eval_tasks.engine.runtime import check_config, pin_threads, prepare_torch
from eval_tasks.engine.tensor_parallel import Total, check_shares, share_of
from eval_tasks.engine.validity import invalid_response, problem_of
from eval_tasks.errors import UserError
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response
from eval_tasks.tokenization import Tokenizer, load_tokenizer

_MEBIBYTE = 1024 * 1024

_log = logging.getLogger(__name__)


class Engine:
    """A loaded checkpoint. `context` is in tokens: the model's, or the configured one when that is less."""

    def __init__(
        self,
        *,
        config: EngineConfig,
        tuning: EngineTuning,
        tokenizer: Tokenizer,
        body: Body,
        head: Head,
        context: int,
    ) -> None:
        if config.threads > body.max_threads:
            raise UserError(
                f"threads is {config.threads} and a layer of this model has an odd width: only 1 thread keeps its bits"
            )
        self.config = config
        self.tuning = tuning
        self.tokenizer = tokenizer
        self.context = context
        self._body = body
        self._head = head
        self.paths = PrefixPaths(body, tuning.prefix_cache_mb * _MEBIBYTE, shared=config.prefix == "shared")

    def respond(self, requests: Sequence[Request]) -> list[Response]:
        """One response per request, in order; kinds may be mixed. What cannot run is ``invalid`` with a reason."""
        pin_threads(self.config)
        responses: dict[int, Response] = {}
        scored: list[int] = []
        generated: list[int] = []
        for i, request in enumerate(requests):
            problem = problem_of(request, context=self.context, n_embeddings=self.n_embeddings)
            if problem:
                responses[i] = invalid_response(request, problem)
            else:
                (generated if request.kind == "generation" else scored).append(i)
        responses.update(zip(scored, self._score([requests[i] for i in scored]), strict=True))
        responses.update(zip(generated, self._generate([requests[i] for i in generated]), strict=True))
        return [responses[i] for i in range(len(requests))]

    @property
    def n_embeddings(self) -> int:
        """Rows of the output layer."""
        return self._head.n_tokens

    def _score(self, requests: Sequence[Request]) -> list[Response]:
        return score(
            requests,
            body=self._body,
            head=self._head,
            paths=self.paths,
            tokens_per_forward=self.tuning.tokens_per_forward,
        )

    def _generate(self, requests: Sequence[Request]) -> list[Response]:
        generator = Generator(
            body=self._body,
            head=self._head,
            tokenizer=self.tokenizer,
            paths=self.paths,
            tuning=self.tuning,
            context=self.context,
        )
        return generator.generate(requests)

    def tuned(self, tuning: EngineTuning) -> Engine:
        """The same loaded weights with other tuning values, and no prefix kept."""
        return self._with(self.config, tuning)

    def with_prefix(self, prefix: Literal["none", "shared"]) -> Engine:
        """The same loaded weights with or without prefix sharing."""
        return self._with(dataclasses.replace(self.config, prefix=prefix), self.tuning)

    def with_threads(self, threads: int) -> Engine:
        """The same loaded weights on another number of threads."""
        return self._with(dataclasses.replace(self.config, threads=threads), self.tuning)

    def _with(self, config: EngineConfig, tuning: EngineTuning) -> Engine:
        check_config(config, tuning)
        return Engine(
            config=config,
            tuning=tuning,
            tokenizer=self.tokenizer,
            body=self._body,
            head=self._head,
            context=self.context,
        )


def load_engine(
    folder: Path,
    config: EngineConfig,
    tuning: EngineTuning | None = None,
    workload: Workload = WEIGHTS_ALONE,
) -> Engine:
    """An engine for the checkpoint in the local `folder`; its `tuning` is lower than asked where `workload` needs it.

    Raises UserError for a configuration outside the contract, and CheckpointError with a reason for a checkpoint that
    must not be evaluated (`architectures.check_architecture`, `memory.fitted`, `loading.load_model`).
    """
    tuning = tuning or EngineTuning()
    check_config(config, tuning)
    declared = read_config(folder)
    positions = max_context(declared)
    context = min(positions, config.max_context or positions)
    is_reference = config.attention == "reference"
    (check_reference_architecture if is_reference else check_architecture)(declared)
    check_shares(folder, config.tensor_parallel)
    tokenizer = load_tokenizer(folder)
    device = prepare_torch(config)
    tuning = fitted(folder, config, tuning, workload)
    began = time.perf_counter()
    if is_reference:
        from eval_tasks.engine.reference import ReferenceEngine, load_plain_model

        plain = load_plain_model(folder, config, device, tokenizer.vocab_size)
        return ReferenceEngine(config=config, tuning=tuning, tokenizer=tokenizer, model=plain, context=context)
    engine: Engine
    if config.tensor_parallel > 1:
        from eval_tasks.engine.ranks import load_parallel

        engine = load_parallel(folder, config, tuning, tokenizer, context)
    else:
        body, head = assemble(load_model(folder, config.dtype, device, tokenizer.vocab_size), config)
        engine = Engine(config=config, tuning=tuning, tokenizer=tokenizer, body=body, head=head, context=context)
    _log.info("%s was loaded in %.1f s", folder.name, time.perf_counter() - began)
    return engine


def assemble(model: Any, config: EngineConfig, *, rank: int = 0, total: Total | None = None) -> tuple[Body, Head]:
    """What the engine computes with, in place of a loaded model, which is used up; of `total`'s ranks, one's share."""
    output = model.get_output_embeddings()
    softcap = getattr(model.config, "final_logit_softcapping", None)
    head = Head(output.weight, output.bias, softcap)
    base = model.base_model
    # What the head has of its own is kept by `head` alone; a tied one is the embedding, which `base` keeps.
    del model, output
    share = None if total is None else share_of(base, rank, config.tensor_parallel, total)
    widths = [*pin_linears(base, share), *pin_experts(base)]
    body = Body(base, base.config, widths=widths, degree=config.tensor_parallel)
    own_weights(base)
    if cuda.uses_kernels(body.device):
        from eval_tasks.engine.cuda.rows import pin_norms

        pin_norms(base)
    else:
        pin_layers(base)
    give_back()
    keep_freed()
    return body, head
