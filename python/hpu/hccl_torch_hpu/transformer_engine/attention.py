# SPDX-License-Identifier: Apache-2.0
"""Attention on 8-bit queries, keys and values."""
from __future__ import annotations

from typing import Any

import torch

from hccl_torch_hpu import switches
from hccl_torch_hpu.numerics.attention import FusedSDPA
from hccl_torch_hpu.transformer_engine.linear import restore
from hccl_torch_hpu.transformer_engine.scaling import Scales
from hccl_torch_hpu.transformer_engine.state import Mode, mode

_TENSORS = 3


class _Rounding(torch.autograd.Function):
    """Rounds a tensor to 8 bits, and rounds its gradient in the backward pass."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, scales: Scales, mode: Mode, number: int) -> torch.Tensor:
        ctx.scales, ctx.mode, ctx.number = scales, mode, number
        return restore(*scales.cast(number, tensor, mode), tensor.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        rounded = restore(*ctx.scales.cast(_TENSORS + ctx.number, gradient, ctx.mode), gradient.dtype)
        return rounded, None, None, None


class FusedAttention(torch.nn.Module):
    """``FusedSDPA`` that rounds queries, keys, values and gradients to 8-bit floats inside
    ``fp8_autocast(enabled=True)``.

    Args:
        scale: the factor for q k^T; None means 1 / sqrt(head size).
        attention_dropout: the dropout probability during training.
        enable_recompute: as for ``torch.hpu.sdp_kernel``; does not affect the results.
    """

    def __init__(self, scale: float | None = None, attention_dropout: float = 0.0,
                 enable_recompute: bool | None = False) -> None:
        super().__init__()
        self.scale = scale
        self.attention_dropout = attention_dropout
        self.enable_recompute = enable_recompute
        self.scales = Scales(forward=_TENSORS, backward=_TENSORS)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None = None,
                is_causal: bool = False, softmax_mode: str = "None") -> torch.Tensor:
        """Returns the attention, with the shape of ``q``. The arguments are those of ``FusedSDPA``."""
        now = self.scales.begin_step(mode(), q.device)
        if now.enabled:
            q, k, v = (_Rounding.apply(one, self.scales, now, number) for number, one in enumerate((q, k, v)))
        dropout = self.attention_dropout if self.training else 0.0
        with switches.sdp_kernel(bool(self.enable_recompute)):
            return FusedSDPA.apply(q, k, v, attn_mask, dropout, is_causal, self.scale, softmax_mode)
