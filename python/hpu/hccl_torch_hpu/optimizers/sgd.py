# SPDX-License-Identifier: Apache-2.0
"""Stochastic gradient descent."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative


class FusedSGD(SteppedOptimizer):
    """SGD with the formula of ``torch.optim.SGD``; see there for the arguments, whose order differs.

    Raises:
        ValueError: a value is out of its range, or ``nesterov`` is used without momentum or with dampening.
    """

    _counts = False

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0, weight_decay: float = 0,
                 dampening: float = 0, nesterov: bool = False) -> None:
        refuse_negative(lr=lr, momentum=momentum, weight_decay=weight_decay, dampening=dampening)
        if nesterov and (momentum == 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "dampening": dampening,
                                  "nesterov": nesterov})

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        parameter.add_(self._direction(parameter, group), alpha=-float(group["lr"]))

    def _direction(self, parameter: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
        gradient = parameter.grad.add(parameter, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum == 0:
            return gradient
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = gradient.clone()
        else:
            state["momentum_buffer"].mul_(momentum).add_(gradient, alpha=1.0 - group["dampening"])
        buffer = state["momentum_buffer"]
        return gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer
