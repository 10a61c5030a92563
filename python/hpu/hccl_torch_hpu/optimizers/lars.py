# SPDX-License-Identifier: Apache-2.0
"""LARS: wraps another optimizer and scales each layer's learning rate."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from hccl_torch_hpu.optimizers.common import evaluate


class FusedLars(Optimizer):
    """LARS (arXiv:1708.03888). Wraps an optimizer that does not apply the learning rate itself, such as
    ``FusedResourceApplyMomentum``.

    Each gradient is multiplied by the group's learning rate. If ``skip_mask`` is 1 for the parameter, the weight decay
    is added to the gradient first, and the sum is also multiplied by ``eeta |w| / (|g| + weight_decay |w| + eps)``, or
    by 1 if ``|w|`` or ``|g|`` is 0.

    Args:
        optimizer: updates the parameters from the scaled gradients. Its ``weight_decay`` is 0 during the update.
        skip_mask: for each parameter of a group, 1 if LARS scales its learning rate, else 0.
        eeta: the trust coefficient of a layer.
        eps: prevents a division by 0.
    """

    def __init__(self, optimizer: Optimizer, skip_mask: Sequence[int], eeta: float = 0.001, eps: float = 1e-8) -> None:
        super().__init__(optimizer.param_groups, {**optimizer.defaults, "eeta": eeta, "eps": eps})
        self.optim = optimizer
        self.param_groups = optimizer.param_groups
        self.state = optimizer.state
        self.skip_mask = skip_mask
        self.eeta = eeta
        self.eps = eps

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clears the gradients."""
        self.optim.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the wrapped optimizer."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets the state of the wrapped optimizer."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        self.state = self.optim.state

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Scales the gradients, then updates the parameters. Returns the closure's result, or None if there is no
        closure."""
        loss = evaluate(closure)
        decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        try:
            for group, decay in zip(self.optim.param_groups, decays):
                for parameter, is_scaled in zip(group["params"], self.skip_mask):
                    if parameter.grad is not None:
                        self._scale(parameter, decay, float(group["lr"]), is_scaled == 1)
                group["weight_decay"] = 0
            self.optim.step()
        finally:
            for group, decay in zip(self.optim.param_groups, decays):
                group["weight_decay"] = decay
        return loss

    def _scale(self, parameter: torch.Tensor, decay: float, rate: float, is_scaled: bool) -> None:
        gradient = parameter.grad
        if not is_scaled:
            gradient.mul_(rate)
            return
        weight, slope = parameter.norm(), gradient.norm()
        trust = self.eeta * weight / (slope + decay * weight + self.eps)
        trust = torch.where((weight > 0) & (slope > 0), trust, torch.ones_like(trust))
        gradient.add_(parameter, alpha=decay).mul_(trust * rate)
