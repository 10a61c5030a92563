# SPDX-License-Identifier: Apache-2.0
"""A linear layer that trains with 8-bit floats."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from hccl_torch_hpu.transformer_engine.scaling import Scales
from hccl_torch_hpu.transformer_engine.state import Mode, mode

_INPUT, _WEIGHT, _GRADIENT = range(3)


def restore(values: torch.Tensor, factor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Converts 8-bit values to ``dtype`` and undoes their scale."""
    return (values.float() * factor).to(dtype)


class _Product(torch.autograd.Function):
    """``x w^T`` of 8-bit x and w. The backward pass multiplies an 8-bit gradient by the same x and w."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, scales: Scales, mode: Mode,
                minimize_memory: bool) -> torch.Tensor:
        dtype = torch.promote_types(x.dtype, weight.dtype)
        x8, x_factor = scales.cast(_INPUT, x, mode)
        w8, w_factor = scales.cast(_WEIGHT, weight, mode)
        wide = restore(w8, w_factor, dtype)
        ctx.save_for_backward(x8, x_factor, w8 if minimize_memory else wide, w_factor)
        ctx.scales, ctx.mode, ctx.dtypes, ctx.minimize_memory = scales, mode, (x.dtype, weight.dtype), minimize_memory
        return functional.linear(restore(x8, x_factor, dtype), wide)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        x8, x_factor, weight, w_factor = ctx.saved_tensors
        dtype = gradient.dtype
        weight = restore(weight, w_factor, dtype) if ctx.minimize_memory else weight.to(dtype)
        g8, g_factor = ctx.scales.cast(_GRADIENT, gradient, ctx.mode)
        slope = restore(g8, g_factor, dtype)
        x_slope = (slope @ weight).to(ctx.dtypes[0]) if ctx.needs_input_grad[0] else None
        w_slope = None
        if ctx.needs_input_grad[1]:
            x = restore(x8, x_factor, dtype)
            w_slope = (slope.flatten(0, -2).t() @ x.flatten(0, -2)).to(ctx.dtypes[1])
        return x_slope, w_slope, None, None, None


class Linear(torch.nn.Module):
    """``x w^T + b``, with 8-bit x, w and gradients inside ``fp8_autocast(enabled=True)``, else as ``torch.nn.Linear``.

    Args:
        in_features, out_features: the sizes of inputs and outputs.
        bias: adds a bias.
        return_bias: ``forward`` returns the bias alongside the product instead of adding it.
        params_dtype: the type of the parameters.
        skip_weight_param_allocation: creates no parameters; set them later or pass them to ``forward``.
        minimize_memory: keeps the weight for the backward pass in 8 bits only.
        init_method: fills the weight; as in ``torch.nn.Linear`` if it is None.
        others: arguments for tensor parallelism, which is not supported.

    Raises:
        NotImplementedError: an argument for tensor parallelism is set, or an argument is unknown.
    """

    _PARALLEL = ("sequence_parallel", "fuse_wgrad_accumulation", "tp_group", "get_rng_state_tracker", "parallel_mode",
                 "ub_overlap_rs", "ub_overlap_ag")

    def __init__(self, in_features: int, out_features: int, bias: bool = True, return_bias: bool = False,
                 params_dtype: torch.dtype | None = None, skip_weight_param_allocation: bool = False,
                 minimize_memory: bool = False, init_method: Callable[[torch.Tensor], Any] | None = None,
                 device: Any = None, tp_size: int = 1, **others: Any) -> None:
        super().__init__()
        refused = [name for name, value in others.items() if value or name not in self._PARALLEL]
        if refused or tp_size != 1:
            raise NotImplementedError(f"transformer_engine.Linear: {', '.join(refused) or 'tp_size'} is not "
                                      "supported; use torch.distributed.tensor.parallel for tensor parallelism")
        self.in_features = in_features
        self.out_features = out_features
        self.return_bias = return_bias
        self.minimize_memory = minimize_memory
        self.scales = Scales(forward=2, backward=1)
        kind = {"dtype": params_dtype or torch.get_default_dtype(), "device": device}
        if skip_weight_param_allocation:
            self.weight = self.bias = None
            return
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features, **kind))
        self.bias = torch.nn.Parameter(torch.empty(out_features, **kind)) if bias else None
        self.reset_parameters(init_method)

    def reset_parameters(self, init_method: Callable[[torch.Tensor], Any] | None = None) -> None:
        """Reinitialises the parameters."""
        bound = 1.0 / math.sqrt(max(self.in_features, 1))
        with torch.no_grad():
            if init_method is not None:
                init_method(self.weight)
            else:
                self.weight.uniform_(-bound, bound)
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def forward(self, inp: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None,
                is_first_microbatch: bool | None = None) -> Any:
        """Returns the product, ``[..., out_features]``, plus the bias. With ``return_bias``,
        returns the product and the bias separately.

        Args:
            weight, bias: used instead of the module's own.
            is_first_microbatch: accepted but ignored; each call casts the weight.
        """
        weight = self.weight if weight is None else weight
        bias = self.bias if bias is None else bias
        now = self.scales.begin_step(mode(), inp.device)
        if now.enabled:
            x, w = _as_autocast(inp, weight)
            result = _Product.apply(x, w, self.scales, now, self.minimize_memory)
        else:
            result = functional.linear(inp, weight)
            if now.calibrating:
                self.scales.measure(_INPUT, inp)
                self.scales.measure(_WEIGHT, weight)
        if self.return_bias:
            return result, bias
        return result if bias is None else result + bias.to(result.dtype)

    def extra_repr(self) -> str:
        """Returns the details for the module's text representation."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _as_autocast(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Casts tensors as autocast does: to autocast's type if autocast is enabled, else to the tensors' promoted type."""
    device = tensors[0].device.type
    if torch.is_autocast_enabled(device):
        return [one.to(torch.get_autocast_dtype(device)) for one in tensors]
    dtype = torch.promote_types(tensors[0].dtype, tensors[1].dtype)
    return [one.to(dtype) for one in tensors]
