# SPDX-License-Identifier: Apache-2.0
"""Checks and loops that the optimizers share."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import Optimizer


def refuse_negative(**values: float) -> None:
    """Raises ValueError for the first negative value."""
    for name, value in values.items():
        if value < 0.0:
            raise ValueError(f"{name} is {value}; it must not be negative")


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """Calls the closure with gradients enabled. Returns its result, or None if ``closure`` is None."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


class SteppedOptimizer(Optimizer):
    """An optimizer whose ``_update`` changes one parameter of a group. If ``_counts`` is true, each group counts its
    steps."""

    _counts = True

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients. Returns the closure's result, or None if ``closure`` is None."""
        loss = evaluate(closure)
        self._prepare()
        for group in self.param_groups:
            parameters = list(with_gradients(group, type(self).__name__))
            if parameters and self._counts:
                group["step"] = group.get("step", 0) + 1
            for parameter in parameters:
                self._update(parameter, group)
        return loss

    def _prepare(self) -> None:
        """Does nothing. A subclass can inspect all gradients here before ``step`` changes the first
        parameter."""

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError


def with_gradients(group: dict[str, Any], optimizer: str) -> Iterator[torch.Tensor]:
    """Yields the parameters of a group that have a gradient.

    Raises:
        RuntimeError: a gradient is sparse.
    """
    for parameter in group["params"]:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            raise RuntimeError(f"{optimizer} does not support sparse gradients; use torch.optim.SparseAdam, or dense gradients")
        yield parameter
