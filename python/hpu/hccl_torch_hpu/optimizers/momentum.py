# SPDX-License-Identifier: Apache-2.0
"""Momentum on gradients that have the learning rate in them already, as ``FusedLars`` makes them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative


class FusedResourceApplyMomentum(SteppedOptimizer):
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

    _counts = False

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0, weight_decay: float = 0,
                 nesterov: bool = False) -> None:
        refuse_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov:
            raise NotImplementedError("FusedResourceApplyMomentum: nesterov is not supported; use "
                                      "FusedSGD(nesterov=True)")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov})

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        state["momentum_buffer"].mul_(group["momentum"]).sub_(parameter.grad)
        parameter.add_(state["momentum_buffer"])
