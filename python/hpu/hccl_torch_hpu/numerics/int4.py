# SPDX-License-Identifier: Apache-2.0
"""4-bit integers: each int32 element contains eight, the first one in the lowest bits."""
from __future__ import annotations

import torch

_IN_ONE = 8
_BITS = 4


def unpack_uint4(packed: torch.Tensor) -> torch.Tensor:
    """Returns the integers from 0 to 15 as int32. The last dimension becomes eight times as long."""
    shifts = torch.arange(_IN_ONE, dtype=torch.int32, device=packed.device) * _BITS
    return ((packed.to(torch.int32).unsqueeze(-1) >> shifts) & 15).flatten(-2)


def convert_from_uint4(input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor | None,
                       out_dtype: torch.dtype) -> torch.Tensor:
    """Returns ``(input - zero_point) * scale`` in ``out_dtype``.

    Args:
        input: packed integers.
        scale: factors that broadcast with the integers, or one row of factors for each group of rows.
        zero_point: packed integers or plain numbers, as many as the factors; 0 if it is None.
    """
    values = unpack_uint4(input).float()
    if zero_point is not None:
        is_packed = zero_point.dtype == torch.int32 and zero_point.size(-1) * _IN_ONE == values.size(-1)
        zeros = unpack_uint4(zero_point) if is_packed else zero_point
        values = values - _for_rows(zeros.float(), values)
    return (values * _for_rows(scale.float(), values)).to(out_dtype)


def _for_rows(group: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Repeats each row of ``group`` for all rows of ``values`` to which it applies."""
    if group.dim() < 2 or group.size(-2) in (1, values.size(-2)):
        return group
    return group.repeat_interleave(values.size(-2) // group.size(-2), dim=-2)
