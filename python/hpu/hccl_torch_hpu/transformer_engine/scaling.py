# SPDX-License-Identifier: Apache-2.0
"""Scales of a module's tensors, computed from the largest magnitudes of earlier steps."""
from __future__ import annotations

import torch
import torch.distributed as dist

from hccl_torch_hpu.devices import fp8_max
from hccl_torch_hpu.transformer_engine.state import Mode


class Scales:
    """The scales of a module's 8-bit tensors: activations and weights in the forward pass, gradients in the backward
    pass.

    ``begin_step`` computes the scales when they are due; ``cast`` uses them and, in a step that measures, records
    magnitudes. A tensor that has no scale yet is scaled by its own magnitude.

    Args:
        forward, backward: the number of tensors of each pass; tensors of the backward pass come last.
    """

    def __init__(self, forward: int, backward: int) -> None:
        self.forward = forward
        self.count = forward + backward
        self.steps = 0
        self.history: torch.Tensor | None = None
        self.scale: torch.Tensor | None = None
        self._measured: torch.Tensor | None = None
        self._measures = True
        self._mode: Mode | None = None

    def begin_step(self, mode: Mode, device: torch.device) -> Mode:
        """Adds the magnitudes of the last step to the history if that step measured them, and computes the scales if they
        are due.

        A step that runs again inside a backward pass must return the values of its first run. It keeps the scales and
        the mode of the first run, because it may run in another thread or after the end of ``fp8_autocast``.

        If the last step measured magnitudes and the recipe reduces them over the ranks, blocks until all ranks of the
        group have called this method.

        Returns:
            The mode of the step.
        """
        if torch._C._current_graph_task_id() != -1:
            return self._mode or mode
        self._mode = mode
        if mode.enabled or mode.calibrating:
            self._advance(mode, device)
        return mode

    def _advance(self, mode: Mode, device: torch.device) -> None:
        recipe = mode.recipe
        if self.history is None or self.history.size(0) != recipe.amax_history_len:
            self.history = torch.zeros(recipe.amax_history_len, self.count, device=device)
            self.scale = torch.zeros(self.count, device=device)
            self._measured = torch.zeros(self.count, device=device)
        is_due = self.steps % recipe.interval == 0
        if self._measures and self.steps > 0:
            self._keep_measured(mode)
        if is_due:
            self._compute(mode)
        self._measures = is_due if mode.force_measurement is None else mode.force_measurement
        self.steps += 1

    def _keep_measured(self, mode: Mode) -> None:
        if mode.recipe.reduce_amax and dist.is_available() and dist.is_initialized():
            dist.all_reduce(self._measured, op=dist.ReduceOp.MAX, group=mode.group)
        self.history = torch.cat((self._measured[None], self.history[:-1]))
        self._measured = torch.zeros_like(self._measured)

    def _compute(self, mode: Mode) -> None:
        recipe = mode.recipe
        if callable(recipe.amax_compute_algo):
            amax = recipe.amax_compute_algo(self.history)
        else:
            amax = self.history.amax(dim=0) if recipe.amax_compute_algo == "max" else self.history[0]
        types = [recipe.fp8_format.forward_type] * self.forward
        types += [recipe.fp8_format.backward_type] * (self.count - self.forward)
        limits = torch.tensor([fp8_max(one) for one in types], device=amax.device)
        if recipe.scaling_factor_compute_algo is not None:
            self.scale = recipe.scaling_factor_compute_algo(amax, self.scale, limits, recipe)
            return
        is_known = (amax > 0) & torch.isfinite(amax)
        self.scale = torch.where(is_known, limits / amax / 2.0 ** recipe.margin, self.scale)

    def measure(self, number: int, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor's largest magnitude. In a step that measures, also includes it in the step's maximum."""
        amax = tensor.detach().abs().amax().float()
        if self._measures:
            self._measured[number] = torch.maximum(self._measured[number], amax)
        return amax

    def cast(self, number: int, tensor: torch.Tensor, mode: Mode) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the tensor in 8 bits and the factor that undoes its scale."""
        formats = mode.recipe.fp8_format
        dtype = formats.forward_type if number < self.forward else formats.backward_type
        limit = fp8_max(dtype)
        scale = self.scale[number]
        amax = self.measure(number, tensor)
        own = torch.where(amax > 0, limit / amax / 2.0 ** mode.recipe.margin, torch.ones_like(amax))
        scale = torch.where(scale > 0, scale, own)
        return (tensor.float() * scale).clamp(-limit, limit).to(dtype), 1.0 / scale
