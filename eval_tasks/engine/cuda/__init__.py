"""The engine's products, norms and attention on an NVIDIA GPU, each row a function of that row and the weights alone.

cuBLAS chooses kernels, and how sums over K are split, by the shape of the whole product, so a row's bits depend on how
many rows are beside it. Here every size of a tile is a function of the weight's own shape and of the dtype, and every
sum runs in one order. The kernels are Triton: its wheel comes with torch's CUDA wheel and is no dependency of its own.

Plain torch stays where its kernel takes a row by itself: element-wise operations, embeddings, and layer norm, which
gives each row one block of a fixed number of threads. It does not stay for
 - `mean` and `sum` (RMS norm): the shape of a block, and whether blocks share a row, follow the number of rows;
 - `log_softmax` over more than 1,024 elements: where a row's first element falls within 16 bytes moves its sums, and
   that follows the row's place when the width is odd, as GPT-2's 50,257 is;
 - matrix products and scaled-dot-product attention.

Importing this package imports neither torch nor Triton. `interpreted` is how its tests run without a GPU.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from eval_tasks.errors import InfraError, UserError

if TYPE_CHECKING:
    import torch

_LEAST_CAPABILITY = (8, 0)
_ALIGNMENT = 16


def interpreted() -> bool:
    """Whether Triton runs its kernels in Python, on tensors in main memory: for tests, not for work."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def uses_kernels(device: torch.device) -> bool:
    """Whether what is computed on `device` goes through this package."""
    return device.type == "cuda"


def check_cuda() -> None:
    """Raise InfraError when Triton is missing, UserError for a GPU that is too old for these kernels."""
    import torch

    if importlib.util.find_spec("triton") is None:
        raise InfraError(
            "device is cuda and triton is not installed; it comes with torch's CUDA wheel: "
            "use an image with that wheel, or pip install triton in the version that torch names"
        )
    capability = torch.cuda.get_device_capability()
    if capability < _LEAST_CAPABILITY:
        raise UserError(
            f"{torch.cuda.get_device_name()} has compute capability {capability[0]}.{capability[1]}; "
            f"the engine's kernels need {_LEAST_CAPABILITY[0]}.{_LEAST_CAPABILITY[1]} or more (Ampere or later)"
        )


def aligned(x: torch.Tensor) -> torch.Tensor:
    """`x` contiguous, from an address that is a multiple of 16 bytes: Triton compiles another kernel for others."""
    x = x.contiguous()
    return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()
