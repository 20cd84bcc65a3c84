"""A Llama of random weights with a byte tokenizer, written from a seed: the same bytes on any machine.

Weights come from NumPy's PCG64 (whose stream is fixed), not from torch, and the files are written by hand, so that two
releases of transformers read the same model. " A" to " D" are one token each, as in real tokenizers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

HIDDEN, LAYERS, HEADS, KV_HEADS, INTERMEDIATE, CONTEXT = 64, 2, 4, 2, 128, 4096
SPECIAL = ("<s>", "</s>", "<pad>")
LETTERS = ("A", "B", "C", "D")
SEED = 20_240_907


def write_model(folder: Path, seed: int = SEED) -> Path:
    """Write config, weights drawn from `seed`, and tokenizer into `folder`, and give it back."""
    folder.mkdir(parents=True, exist_ok=True)
    n_tokens = _write_tokenizer(folder)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": n_tokens,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    save_file(_weights(n_tokens, seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _weights(n_tokens: int, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.Generator(np.random.PCG64(seed))
    kv_width = HIDDEN // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (n_tokens, HIDDEN)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.self_attn.q_proj.weight": (HIDDEN, HIDDEN),
            f"{at}.self_attn.k_proj.weight": (kv_width, HIDDEN),
            f"{at}.self_attn.v_proj.weight": (kv_width, HIDDEN),
            f"{at}.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
            f"{at}.mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
            f"{at}.mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
            f"{at}.mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
            f"{at}.input_layernorm.weight": (HIDDEN,),
            f"{at}.post_attention_layernorm.weight": (HIDDEN,),
        }
    shapes |= {"model.norm.weight": (HIDDEN,), "lm_head.weight": (n_tokens, HIDDEN)}
    scale = 0.25
    return {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else (draw.random(shape, np.float32) * np.float32(2) - np.float32(1)) * np.float32(scale)
        for name, shape in shapes.items()
    }


def _write_tokenizer(folder: Path) -> int:
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    space = "Ġ"
    merged = [space + letter for letter in LETTERS]
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *symbols, *merged])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [(space, letter) for letter in LETTERS]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
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
    return len(vocabulary)
