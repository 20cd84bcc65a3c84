"""`python demo/convert_gguf.py MODEL.gguf FOLDER`: a GGUF file as a Hugging Face folder with safetensors in fp32.

Needs the packages gguf and accelerate beside the project's own; `real_checkpoints` runs it with both on the path.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(source: Path, target: Path) -> None:
    """Dequantise `source` and save it, its tokenizer and its chat template."""
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    config = copy.deepcopy(model.config)
    # A model read from GGUF refuses to be saved, though its weights are plain fp32 by now.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict(), strict=True)
    plain.generation_config = model.generation_config
    plain.save_pretrained(target)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
