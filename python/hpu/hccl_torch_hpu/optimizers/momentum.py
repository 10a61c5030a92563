# SPDX-License-Identifier: Apache-2.0
"""Momentum for gradients that have been multiplied by the learning rate, for example by ``FusedLars``."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu.optimizers.common import SteppedOptimizer, refuse_negative


class FusedResourceApplyMomentum(SteppedOptimizer):
    """Each step is ``momentum * previous step - gradient``. The gradients must already be multiplied by the learning
    rate. As on a Gaudi, this optimizer itself uses neither ``lr`` nor ``weight_decay``, but a ``FusedLars`` that wraps
    it uses both.

    Args:
        params: parameters, or groups of them.
        lr: used only by a wrapper such as ``FusedLars``.
        momentum: the factor of the previous step.
        weight_decay: used only by a wrapper such as ``FusedLars``.
        nesterov: must be False.

    Raises:
        ValueError: a value is out of its range.
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
