# SPDX-License-Identifier: Apache-2.0
"""LAMB: Adam whose steps are scaled layer by layer."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative, with_gradients


class FusedLamb(SteppedOptimizer):
    """LAMB (arXiv:1904.00962).

    Args:
        params: parameters, or groups of them.
        lr, betas, eps, weight_decay: as for Adam.
        bias_correction: corrects the bias of the moments, which start at 0.
        amsgrad: must be False.
        adam_w_mode: adds the weight decay to the step instead of to the gradient.
        grad_averaging: weights the gradient in the first moment by 1 - beta1 instead of 1.
        set_grad_none: makes ``zero_grad()`` set the gradients to None.
        max_grad_norm: scales the gradients so that their total norm is at most this value; no limit if it is None.
        use_lamb: also scales the steps of groups without weight decay.
        fused: accepted and ignored.
        dtype: the type for computing the norm of the gradients; their own type if it is None.

    Raises:
        RuntimeError: ``amsgrad`` is True.
        ValueError: a value is out of its range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, bias_correction: bool = True,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 0.01,
                 amsgrad: bool = False, adam_w_mode: bool = True, grad_averaging: bool = True,
                 set_grad_none: bool = True, max_grad_norm: float | None = 1.0, use_lamb: bool = False,
                 fused: bool = False, dtype: torch.dtype | None = None) -> None:
        if amsgrad:
            raise RuntimeError("FusedLamb: amsgrad is not supported; use torch.optim.AdamW(amsgrad=True)")
        refuse_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps,
                                  "weight_decay": weight_decay, "grad_averaging": grad_averaging,
                                  "max_grad_norm": max_grad_norm})
        self.adam_w_mode = adam_w_mode
        self.set_grad_none = set_grad_none
        self.use_lamb = use_lamb
        self.dtype = dtype

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Clears the gradients. If ``set_to_none`` is None, ``set_grad_none`` applies."""
        super().zero_grad(self.set_grad_none if set_to_none is None else set_to_none)

    def _prepare(self) -> None:
        """Computes the divisor of the gradients: the ratio of their total norm to the limit, but at least 1."""
        limit = self.defaults["max_grad_norm"]
        gradients = [one.grad for group in self.param_groups for one in with_gradients(group, "FusedLamb")]
        self._divisor = 1.0
        if limit is not None and gradients:
            squares = [one.to(self.dtype or one.dtype).square().sum() for one in gradients]
            self._divisor = torch.clamp(torch.stack(squares).sum().sqrt() / limit, min=1.0)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        gradient = parameter.grad / self._divisor
        if not self.adam_w_mode:
            gradient = gradient + decay * parameter
        state = self.state[parameter]
        if not state:
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        first, second = state["exp_avg"], state["exp_avg_sq"]
        first.mul_(beta1).add_(gradient, alpha=1.0 - beta1 if group["grad_averaging"] else 1.0)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
        correction1 = correction2 = 1.0
        if group["bias_correction"]:
            correction1, correction2 = 1.0 - beta1 ** group["step"], 1.0 - beta2 ** group["step"]
        change = (first / correction1) / ((second / correction2).sqrt() + group["eps"])
        if self.adam_w_mode:
            change = change + decay * parameter
        if decay != 0 or self.use_lamb:
            change = change * _trust(parameter.norm(), change.norm())
        parameter.add_(change, alpha=-group["lr"])


def _trust(weight: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
    """Returns the ratio of the norms, or 1 if either is 0."""
    return torch.where((weight > 0) & (change > 0), weight / change, torch.ones_like(weight))
