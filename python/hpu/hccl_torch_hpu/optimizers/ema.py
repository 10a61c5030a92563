# SPDX-License-Identifier: Apache-2.0
"""A moving average of a model's parameters."""
from __future__ import annotations

import copy
import math
from collections.abc import Collection

import torch

# The number of updates after which the decay reaches 1 - 1/e of its final value.
_RAMP = 2000


class FusedEMA:
    """Maintains ``ema``, a copy of the model with a moving average of its floating-point state.

    Args:
        model: the model; if it is wrapped for parallel training, the wrapped model is used.
        decay: the weight of the old average in an update; it grows from 0 to this value over a few thousand updates.
        updates: the number of updates so far.

    Raises:
        ValueError: the decay is negative.
    """

    def __init__(self, model: torch.nn.Module, decay: float = 0.9999, updates: float = 0) -> None:
        if decay < 0.0:
            raise ValueError(f"decay is {decay}; it must not be negative")
        self.ema = copy.deepcopy(_inner(model)).eval()
        self.ema.requires_grad_(False)
        self.decay = lambda count: decay * (1 - math.exp(-count / _RAMP))
        self.updates = updates

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        """Moves the average towards the model's current state."""
        self.updates += 1
        share = self.decay(self.updates)
        present = _inner(model).state_dict()
        for name, value in self.ema.state_dict().items():
            if value.is_floating_point():
                value.mul_(share).add_(present[name].to(value.dtype), alpha=1.0 - share)

    def update_attr(self, model: torch.nn.Module, include: Collection[str] = (),
                    exclude: Collection[str] = ("process_group", "reducer")) -> None:
        """Copies the model's public attributes, except those in ``exclude``. If ``include`` is not empty, copies only
        those in it."""
        for name, value in vars(model).items():
            if not name.startswith("_") and name not in exclude and (not include or name in include):
                setattr(self.ema, name, value)


def _inner(model: torch.nn.Module) -> torch.nn.Module:
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    return model.module if isinstance(model, parallel) else model
