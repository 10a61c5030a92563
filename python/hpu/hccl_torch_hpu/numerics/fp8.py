# SPDX-License-Identifier: Apache-2.0
"""8-bit floats: scaled casts, and products of the cast values. The values are those of torch's 8-bit types; products
are computed in float32."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch

from hccl_torch_hpu.devices import fp8_max

Scale = Union[torch.Tensor, float, Sequence[float], None]

# The number of mantissa bits, and the exponent of the smallest normal value.
_MANTISSA = {torch.float8_e4m3fn: (3, -6), torch.float8_e5m2: (2, -14)}


def as_tensor(scale: Scale, like: torch.Tensor, shape: Sequence[int] | None = None) -> torch.Tensor | None:
    """Returns the scale as a float32 tensor on the device of ``like``, in the given shape. Returns None if the scale
    is None."""
    if scale is None:
        return None
    tensor = torch.as_tensor(scale, dtype=torch.float32, device=like.device)
    return tensor.reshape(tuple(shape)) if shape is not None else tensor


def cast_to_fp8(input: torch.Tensor, scale: Scale = None, stochastic_rounding: bool = False, is_amax: bool = False,
                dtype: torch.dtype | None = None,
                scale_shape: Sequence[int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ``input * scale`` in 8 bits, and the largest magnitude of the input.

    Values beyond the range of the 8-bit type are clamped to that range. The magnitude is one float32 if ``is_amax`` is
    True, else an empty tensor.

    Args:
        stochastic_rounding: rounds up or down at random instead of to nearest, so that the expected value is exact.
        dtype: ``torch.float8_e5m2`` if it is None.
        scale_shape: the scale is first reshaped to this shape.
    """
    dtype = torch.float8_e5m2 if dtype is None else dtype
    limit = fp8_max(dtype)
    values = input.float()
    factor = as_tensor(scale, input, scale_shape)
    scaled = values if factor is None else values * factor
    if stochastic_rounding:
        scaled = round_stochastically(scaled, dtype)
    amax = values.abs().amax() if is_amax else torch.empty(0, dtype=torch.float32, device=input.device)
    return scaled.clamp(-limit, limit).to(dtype), amax


def round_stochastically(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Rounds each value to one of its two neighbours in the 8-bit type. The expected value of the result is the value
    itself."""
    mantissa, least = _MANTISSA[dtype]
    _, exponent = torch.frexp(values)
    step = torch.exp2(torch.clamp(exponent - 1, min=least).float() - mantissa)
    return torch.floor(values / step + torch.rand_like(values)) * step


def cast_from_fp8(input: torch.Tensor, scale: Scale, out_dtype: torch.dtype,
                  scale_shape: Sequence[int] | None = None) -> torch.Tensor:
    """Returns ``input * scale`` in ``out_dtype``."""
    factor = as_tensor(scale, input, scale_shape)
    values = input.float()
    return (values if factor is None else values * factor).to(out_dtype)


def cast_to_fp8_just_in_time(input: torch.Tensor, block_shape: Sequence[int],
                             out_dtype: torch.dtype = torch.float8_e4m3fn,
                             scale_dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Casts a matrix with a scale for each block, computed from the block's largest magnitude. In inputs with more than
    two dimensions, all dimensions but the last count as rows.

    Returns:
        The 8-bit values, and the factors that undo the cast: one for each block.
    """
    limit = fp8_max(out_dtype)
    rows, columns = input.reshape(-1, input.size(-1)).shape
    height, width = (min(block, extent) for block, extent in zip(block_shape, (rows, columns)))
    padded = torch.nn.functional.pad(input.reshape(rows, columns).float(), (0, -columns % width, 0, -rows % height))
    blocks = padded.reshape(padded.size(0) // height, height, padded.size(1) // width, width)
    factors = (blocks.abs().amax(dim=(1, 3)) / limit).to(scale_dtype)
    safe = torch.where(factors == 0, torch.ones_like(factors), factors).float()
    values = (blocks / safe[:, None, :, None]).clamp(-limit, limit).reshape(padded.shape)[:rows, :columns]
    shape = (*input.shape[:-1], factors.size(1)) if height == 1 else factors.shape
    return values.reshape(input.shape).to(out_dtype), factors.reshape(shape)


def spread(scale: torch.Tensor, operand: torch.Tensor, is_left: bool) -> torch.Tensor:
    """Returns the scale in a shape that broadcasts with a matrix. A scale is one value, one value for each row of the
    left matrix or column of the right one, or one value for each block."""
    if scale.numel() == 1:
        return scale.reshape(())
    if scale.dim() == 1:
        return scale.unsqueeze(-1) if is_left else scale
    for dimension in (-2, -1):
        have, need = scale.size(dimension), operand.size(dimension)
        if have not in (1, need):
            block = -(-need // have)
            scale = scale.repeat_interleave(block, dim=dimension).narrow(dimension, 0, need)
    return scale


def fp8_gemm(A: torch.Tensor, trans_A: bool, B: torch.Tensor, trans_B: bool, D: torch.Tensor | None,
             out_dtype: torch.dtype, A_scale_inv: Scale = None, B_scale_inv: Scale = None,
             bias: torch.Tensor | None = None, accumulate: bool = False,
             B_scale_shape: Sequence[int] | None = None) -> torch.Tensor:
    """Returns ``(A_scale_inv A) (B_scale_inv B) + bias``, plus ``D`` if ``accumulate`` is True, in ``out_dtype``.

    Args:
        trans_A, trans_B: whether the last two dimensions are transposed first; the scale applies to the transposed
            matrix.
        A_scale_inv, B_scale_inv: factors that undo the casts: one value, one for each row of A or column of B, or one
            for each block.
    """
    operands = []
    for matrix, turns, scale, shape, is_left in ((A, trans_A, A_scale_inv, None, True),
                                                 (B, trans_B, B_scale_inv, B_scale_shape, False)):
        matrix = (matrix.transpose(-2, -1) if turns else matrix).float()
        factor = as_tensor(scale, matrix, shape)
        operands.append(matrix if factor is None else matrix * spread(factor, matrix, is_left))
    result = operands[0] @ operands[1]
    if bias is not None:
        result = result + bias.float()
    if accumulate and D is not None:
        result = result + D.float()
    return result.to(out_dtype)


def softmax_fp8(input: torch.Tensor, dim: int, input_scale: Scale = None, output_scale: Scale = None,
                inv_attn_heads: Scale = None, fused_add: torch.Tensor | None = None) -> torch.Tensor:
    """Returns ``softmax(input inv_attn_heads input_scale + fused_add) output_scale``, in ``float8_e4m3fn`` if
    ``output_scale`` is given, else in the type of the input."""
    values = input.float()
    for factor in (inv_attn_heads, input_scale):
        if factor is not None:
            values = values * as_tensor(factor, input)
    if fused_add is not None:
        values = values + fused_add.float()
    result = torch.softmax(values, dim)
    if output_scale is None:
        return result.to(input.dtype)
    limit = fp8_max(torch.float8_e4m3fn)
    return (result * as_tensor(output_scale, input)).clamp(-limit, limit).to(torch.float8_e4m3fn)
