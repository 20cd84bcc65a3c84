"""Names of sizes in, checkpoints of random weights out, with a tokenizer trained on the text that will be measured.

The two sizes are Llamas of about 25 and 135 million parameters; `tiny` is for tests of the benchmark itself. Weights
are drawn from a seed, wide enough that greedy outputs wander instead of repeating one token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CONTEXT = 2048
_SPECIAL = ("<s>", "</s>", "<pad>")
_SEED = 20_240_907


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a Llama with a tied head."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.hidden // self.heads

    @property
    def n_body_weights(self) -> int:
        """Weights of all matrix products but the head's."""
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_heads * self.head_width
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def n_parameters(self) -> int:
        """All weights but those of the norms."""
        return self.n_body_weights + self.vocabulary * self.hidden


SHAPES = {
    "tiny": Shape(layers=2, hidden=64, heads=4, kv_heads=2, intermediate=128, vocabulary=512),
    "25m": Shape(layers=7, hidden=512, heads=8, kv_heads=4, intermediate=1408, vocabulary=8192),
    "135m": Shape(layers=30, hidden=576, heads=9, kv_heads=3, intermediate=1536, vocabulary=49152),
}


def shape_of(folder: Path) -> Shape:
    """The shape that a Llama's config.json declares."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    return Shape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        intermediate=config["intermediate_size"],
        vocabulary=config["vocab_size"],
    )


def write_model(folder: Path, shape: Shape, texts: Iterable[str]) -> Path:
    """Write config, float32 weights and a byte-level BPE tokenizer trained on `texts`; give `folder` back."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder, shape.vocabulary, texts)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    save_file(_weights(shape), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _weights(shape: Shape) -> dict[str, np.ndarray]:
    kv_width = shape.kv_heads * shape.head_width
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (shape.vocabulary, shape.hidden)}
    for layer in range(shape.layers):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.self_attn.q_proj.weight": (shape.hidden, shape.hidden),
            f"{at}.self_attn.k_proj.weight": (kv_width, shape.hidden),
            f"{at}.self_attn.v_proj.weight": (kv_width, shape.hidden),
            f"{at}.self_attn.o_proj.weight": (shape.hidden, shape.hidden),
            f"{at}.mlp.gate_proj.weight": (shape.intermediate, shape.hidden),
            f"{at}.mlp.up_proj.weight": (shape.intermediate, shape.hidden),
            f"{at}.mlp.down_proj.weight": (shape.hidden, shape.intermediate),
            f"{at}.input_layernorm.weight": (shape.hidden,),
            f"{at}.post_attention_layernorm.weight": (shape.hidden,),
        }
    shapes["model.norm.weight"] = (shape.hidden,)
    draw = np.random.Generator(np.random.PCG64(_SEED))
    return {
        name: np.ones(size, np.float32)
        if len(size) == 1
        else draw.standard_normal(size, np.float32) * np.float32(_spread(name, size))
        for name, size in shapes.items()
    }


def _spread(name: str, size: tuple[int, ...]) -> float:
    """Standard deviation: layers that keep the size of what they read, embeddings too small to be repeated."""
    return 0.05 if "embed" in name else 1.0 / math.sqrt(size[1])


def _write_tokenizer(folder: Path, vocabulary: int, texts: Iterable[str]) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "add_bos_token": False,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), "utf-8")
