# SPDX-License-Identifier: Apache-2.0
"""Adam with decoupled weight decay."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Union

import torch

from hccl_torch_hpu.devices import fp8_max
from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative

MomentTypes = Union[torch.dtype, tuple[torch.dtype, torch.dtype], None]

_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)


class FusedAdamW(SteppedOptimizer):
    """AdamW like ``torch.optim.AdamW``, except that ``eps`` is added before the second moment's bias is corrected, as
    in the Gaudi kernel. If ``eps`` is small compared to the gradients, both give nearly the same result.

    Args:
        params: parameters, or groups of them.
        lr, betas, eps, weight_decay: as for ``torch.optim.AdamW``.
        bias_correction: corrects the bias of the moments, which start at 0.
        moments_dtype: the type of both moments, or one for each; the parameter's type if it is None. 8-bit moments have
            a scale, which is computed from their largest magnitude in each step.

    Raises:
        ValueError: a value is out of its range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-6, weight_decay: float = 0.0, bias_correction: bool = True,
                 moments_dtype: MomentTypes = None) -> None:
        refuse_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"betas are {betas}; both must be at least 0 and below 1")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "bias_correction": bias_correction})
        self.moments_dtype = moments_dtype

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets the state to a result of ``state_dict()``. Moments keep the types that they have in ``state_dict``."""
        super().load_state_dict(state_dict)
        numbers = (number for group in state_dict["param_groups"] for number in group["params"])
        parameters = (parameter for group in self.param_groups for parameter in group["params"])
        for number, parameter in zip(numbers, parameters):
            for name, value in state_dict["state"].get(number, {}).items():
                self.state[parameter][name] = value.to(parameter.device, copy=True)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        size = float(group["lr"])
        if group.get("bias_correction", True):
            size *= math.sqrt(1.0 - beta2 ** group["step"]) / (1.0 - beta1 ** group["step"])
        state = self.state[parameter]
        if not state:
            self._start(parameter, state)
        gradient = parameter.grad
        first, second = (_load(state, name, parameter.dtype) for name in ("exp_avg", "exp_avg_sq"))
        first.mul_(beta1).add_(gradient, alpha=1.0 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
        parameter.mul_(1.0 - float(group["lr"]) * group["weight_decay"])
        parameter.addcdiv_(first, second.sqrt().add_(group["eps"]), value=-size)
        for name, moment in (("exp_avg", first), ("exp_avg_sq", second)):
            _store(state, name, moment)

    def _start(self, parameter: torch.Tensor, state: dict[str, Any]) -> None:
        types = self.moments_dtype if isinstance(self.moments_dtype, tuple) else (self.moments_dtype,) * 2
        for name, dtype in zip(("exp_avg", "exp_avg_sq"), types):
            state[name] = torch.zeros_like(parameter, dtype=dtype or parameter.dtype)
            if dtype in _EIGHT_BITS:
                state[f"{name}_scale"] = torch.ones(1, dtype=torch.float32, device=parameter.device)


def _load(state: dict[str, Any], name: str, dtype: torch.dtype) -> torch.Tensor:
    """Returns the moment in the parameter's type, without a copy if it already has that type."""
    moment = state[name]
    if f"{name}_scale" in state:
        return (moment.float() * state[f"{name}_scale"]).to(dtype)
    return moment.to(dtype)


def _store(state: dict[str, Any], name: str, moment: torch.Tensor) -> None:
    """Stores the moment in its own type. Does nothing if that is the parameter's type."""
    kept = state[name]
    if kept is moment:
        return
    if f"{name}_scale" in state:
        scale = moment.abs().amax().float() / fp8_max(kept.dtype)
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        state[f"{name}_scale"].copy_(scale)
        moment = moment.float() / scale
    kept.copy_(moment)
