# SPDX-License-Identifier: Apache-2.0
"""Adagrad."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative


class FusedAdagrad(SteppedOptimizer):
    """Adagrad with the formula of ``torch.optim.Adagrad``; see there for the arguments.

    Raises:
        ValueError: a value is out of its range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10) -> None:
        refuse_negative(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                        initial_accumulator_value=initial_accumulator_value, eps=eps)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"] = torch.full_like(parameter, initial_accumulator_value)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        rate = float(group["lr"]) / (1 + (group["step"] - 1) * group["lr_decay"])
        gradient = parameter.grad.add(parameter, alpha=group["weight_decay"])
        total = self.state[parameter]["sum"]
        total.addcmul_(gradient, gradient)
        parameter.addcdiv_(gradient, total.sqrt().add_(group["eps"]), value=-rate)
