# SPDX-License-Identifier: Apache-2.0
"""Momentum on gradients that have the learning rate in them already, as ``FusedLars`` makes them."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer

from hccl_torch_hpu.optimizers.common import evaluate, refuse_negative, with_gradients


class FusedResourceApplyMomentum(Optimizer):
    """Takes steps of ``momentum buffer - gradient``: gradients come multiplied by the learning rate, as ``FusedLars``
    leaves them, so ``lr`` is only read there.

    Args:
        params: parameters, or groups of them.
        lr: for the optimizer around this one.
        momentum: the share of the last step that is kept.
        weight_decay: for the optimizer around this one.
        nesterov: must be False.

    Raises:
        ValueError: a value out of its range.
        NotImplementedError: ``nesterov`` is True.
    """

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0, weight_decay: float = 0,
                 nesterov: bool = False) -> None:
        refuse_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov:
            raise NotImplementedError("FusedResourceApplyMomentum: nesterov is not supported; use "
                                      "FusedSGD(nesterov=True)")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters by their gradients. Returns what the closure does, or None."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for parameter in with_gradients(group, "FusedResourceApplyMomentum"):
                state = self.state[parameter]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                state["momentum_buffer"].mul_(group["momentum"]).sub_(parameter.grad)
                parameter.add_(state["momentum_buffer"])
        return loss
