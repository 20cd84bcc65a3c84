"""Train a tiny Llama on word problems, on one CPU thread, and write its checkpoints as a real training job does.

`python demo/train.py --out DIR [--steps N] [--seed S] [--pause SECONDS]`. Each checkpoint is a folder `step-N` that
appears file by file: config, tokenizer, generation config, weights last, no marker. The same seed on the same machine
gives the same bytes. Knows nothing of evaluation and never sees a held-out problem.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging as transformers_logging
from word_problems import NAMES, THINGS, training_document

if TYPE_CHECKING:
    from collections.abc import Sequence

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
CONTEXT = 256
ROWS, COLUMNS = 24, 64  # sequences per step, tokens per sequence
DEFAULT_STEPS = 1200
CHECKPOINTS = (1 / 24, 1 / 6, 1 / 3, 1 / 2, 3 / 4, 1.0)  # shares of the training
PEAK_LEARNING_RATE = 4e-3
_WORDS = (
    "Q A Question Answer : . ? + - * = #### has have gives gets loses more from to of them boxes with in each box Each "
    "holds Then Now How many does"
)


def build_tokenizer() -> Tokenizer:
    """Whole words of the demo's language, single bytes for everything else: any text round-trips."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    text = f"{_WORDS} {' '.join(NAMES)} {' '.join(THINGS)} {' '.join(str(n) for n in range(100))}"
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = {
        piece for word in text.split() for form in (word, f" {word}") for piece, _ in splitter.pre_tokenize_str(form)
    }
    vocabulary = [PAD, BOS, EOS, *alphabet, *sorted(words - set(alphabet))]
    tokenizer = Tokenizer(
        models.BPE(vocab={piece: i for i, piece in enumerate(vocabulary)}, merges=[], ignore_merges=True)
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in (PAD, BOS, EOS)])
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, vocabulary.index(BOS))]
    )
    return tokenizer


def build_model(tokenizer: Tokenizer, seed: int) -> LlamaForCausalLM:
    """A Llama of about 300,000 parameters with seeded random weights."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.token_to_id(BOS),
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
        dtype="float32",
    )
    return LlamaForCausalLM(config)


def batches(tokenizer: Tokenizer, seed: int) -> Iterator[torch.Tensor]:
    """An endless stream of (ROWS, COLUMNS) token ids: documents between BOS and EOS, one after the other."""
    rng = random.Random(seed)
    eos = tokenizer.token_to_id(EOS)
    stream: list[int] = []
    while True:
        while len(stream) < ROWS * COLUMNS:
            stream += [*tokenizer.encode(training_document(rng)).ids, eos]
        yield torch.tensor(stream[: ROWS * COLUMNS]).view(ROWS, COLUMNS)
        del stream[: ROWS * COLUMNS]


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up over a twentieth of the training, then linearly to a tenth of the peak."""
    warmup = max(1, steps // 20)
    if step < warmup:
        return PEAK_LEARNING_RATE * (step + 1) / warmup
    return PEAK_LEARNING_RATE * (1 - 0.9 * (step - warmup) / max(1, steps - warmup))


def write_checkpoint(folder: Path, model: LlamaForCausalLM, tokenizer: Tokenizer, pause: float = 0.0) -> None:
    """The checkpoint's files one by one, the weights after `pause` seconds: until then it is visibly incomplete."""
    folder.mkdir(parents=True)
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "add_bos_token": True,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
    }
    (folder / "config.json").write_text(model.config.to_json_string(use_diff=True), "utf-8")
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=2) + "\n", "utf-8")
    (folder / "generation_config.json").write_text(model.generation_config.to_json_string(), "utf-8")
    time.sleep(pause)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))


def train(out: Path, *, steps: int = DEFAULT_STEPS, seed: int = 0, pause: float = 0.0) -> Iterator[tuple[Path, float]]:
    """Train and yield (checkpoint folder, mean loss since the last one) as each checkpoint is complete."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    wanted = {max(1, round(share * steps)) for share in CHECKPOINTS}
    losses: list[float] = []
    for step, rows in enumerate(batches(tokenizer, seed)):
        if step == steps:
            return
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        loss = model(input_ids=rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step + 1 in wanted:
            folder = out / f"step-{step + 1}"
            write_checkpoint(folder, model, tokenizer, pause)
            yield folder, sum(losses) / len(losses)
            losses.clear()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: one line per checkpoint."""
    parser = argparse.ArgumentParser(description="Train the demo's tiny model and write its checkpoints one by one.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the training run; gets step-N folders")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help=f"optimiser steps (default {DEFAULT_STEPS})")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and training stream (default 0)")
    parser.add_argument(
        "--pause",
        type=float,
        default=0.0,
        help="seconds a checkpoint stays without its weights, as a slow upload would",
    )
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error(f"--steps must be 1 or more, not {options.steps}")
    transformers_logging.set_verbosity_error()
    started = time.monotonic()
    for folder, loss in train(options.out, steps=options.steps, seed=options.seed, pause=options.pause):
        print(f"{folder.name}  loss {loss:.3f}  {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
