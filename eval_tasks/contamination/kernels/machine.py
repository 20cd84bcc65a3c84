"""Machine instructions that numba has no name for: unaligned loads and counting trailing zero bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load_word(_context: Any, array: Any, index: Any) -> Any:
    """The 8 bytes of a byte array from `index` on, as a little-endian uint64; the caller keeps them inside."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        value = builder.load(pointer)
        value.align = 1
        return value

    return types.uint64(array, index), generate


@intrinsic
def trailing_zeros(_context: Any, _value: Any) -> Any:
    """How many low bits of a uint64 are 0; 64 for 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate
