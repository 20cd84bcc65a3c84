"""Every kernel compiles for Ampere and Hopper, which needs no GPU: in a process of its own, without the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from eval_tasks.engine.cuda import attention_kernels as attention, product_kernel, row_kernels
from eval_tasks.engine.cuda.products import tiles_of

capability, dtype = int(sys.argv[1]), sys.argv[2]
own, itemsize = "*" + dtype, 4 if dtype == "fp32" else 2
found = {}

def compiled(kernel, warps, stages, constants, **types):
    names = kernel.arg_names
    signature = {name: types.get(name, "constexpr") for name in names}
    values = {(names.index(n),): constants[n] for n in names if n not in types}
    aligned = {(names.index(n),): [["tt.divisibility", 16]] for n, kind in types.items() if kind[0] == "*"}
    source = ASTSource(kernel, signature, values, aligned)
    options = {"num_warps": warps, "num_stages": stages}
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    text = made.asm["ptx"]
    found[kernel.__name__] = {
        "shared": made.metadata.shared, "tf32": "tf32" in text, "matrix_units": "mma" in text,
        "atomics": "atom." in text,
    }

tiles = tiles_of(4096, itemsize)
compiled(
    product_kernel.product_kernel, tiles.warps, tiles.stages,
    dict(n_in=4096, n_out=4096, has_bias=True, block_rows=tiles.rows, block_out=tiles.out, block_in=tiles.inner,
         widen=False),
    x_ptr=own, weight_ptr=own, bias_ptr=own, y_ptr=own, n_rows="i32",
)
heads = dict(groups=8, repeats=4, width=64, padded_width=64)
form = dict(scale=0.125, window=100, softcap=5.0, block_keys=128 // itemsize, widen=False)
compiled(
    attention.tile_kernel, 4, 1, dict(**heads, **form, padded_repeats=4, tile=16),
    q_ptr=own, k_ptr=own, v_ptr=own, out_ptr=own, blocks_ptr="*i64", spans_ptr="*i64", sources_ptr="*i64", layer="i32",
)
compiled(
    attention.split_kernel, 4, 1, dict(**heads, **form, padded_repeats=16, split=512),
    q_ptr=own, values_ptr="*fp32", sums_ptr="*fp32", rows_ptr="*i64", layer="i32", n_splits="i32",
)
compiled(
    attention.merge_kernel, 4, 1, dict(**heads, window=100, padded_repeats=16, split=512),
    values_ptr="*fp32", sums_ptr="*fp32", rows_ptr="*i64", out_ptr=own, n_splits="i32",
)
compiled(attention.store_kernel, 1, 1, heads, k_ptr=own, v_ptr=own, entries_ptr="*i64", layer="i32")
compiled(row_kernels.log_softmax_kernel, 8, 1, dict(width=50257, block=4096), x_ptr="*fp32", y_ptr="*fp32")
compiled(
    row_kernels.rms_norm_kernel, 8, 1, dict(width=4096, block=4096, eps=1e-5, unit_offset=False),
    x_ptr=own, weight_ptr=own, y_ptr=own,
)
print(json.dumps(found))
"""


@pytest.mark.full
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_every_kernel_compiles(device, tmp_path: Path, capability: int, dtype: str) -> None:
    root = Path(__file__).parents[3]
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(root), "TRITON_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(capability), dtype],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    kernels = json.loads(ran.stdout)
    assert len(kernels) == 7
    for name, kernel in kernels.items():
        assert kernel["shared"] <= 99 * 1024, name
        assert not kernel["tf32"], name
        assert not kernel["atomics"], name
    for name in ("product_kernel", "tile_kernel", "split_kernel"):
        assert kernels[name]["matrix_units"] == (dtype != "fp32"), name
