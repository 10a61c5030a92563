# SPDX-License-Identifier: Apache-2.0
"""Normalization by the root mean square, and a limit on the norm of gradients."""
from __future__ import annotations

import enum
from collections.abc import Iterable

import torch


class RmsNormBwdMode(enum.Enum):
    """Selects how a Gaudi splits the work of the backward pass. Does not affect the results."""

    DEFAULT = 0
    STATIC_CASE_WIDTH_PARTITIONING = 1


class FusedRMSNorm:
    """Normalization by the root mean square of the last dimension."""

    @staticmethod
    def apply(data_in: torch.Tensor, gamma: torch.Tensor, eps: float, use_stages: bool = True, bwd_mode: int = 0,
              fast_math: bool = False) -> torch.Tensor:
        """Returns ``gamma x / sqrt(mean(x^2) + eps)``, computed in float32, in the type of ``data_in``.

        The last three arguments select among a Gaudi's kernels, and do not change the values.
        """
        x = data_in.float()
        x = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
        return (x * gamma.float()).to(data_in.dtype)


class FusedClipNorm:
    """Limits the norm of all gradients taken together.

    Args:
        parameters: accepted and ignored; ``clip_norm`` takes the parameters.
        max_norm: the largest 2-norm.
    """

    # Keeps the division defined if all gradients are 0; torch.nn.utils.clip_grad_norm_ uses the same value.
    _TINY = 1e-6

    def __init__(self, parameters: Iterable[torch.nn.Parameter], max_norm: float) -> None:
        self.max_norm = float(max_norm)
        self.norm_type = 2.0

    def clip_norm(self, parameters: torch.Tensor | Iterable[torch.Tensor]) -> torch.Tensor:
        """Scales the gradients, in place, so that their norm is at most the limit.

        Returns:
            The norm before scaling, or 0 if there are no gradients.
        """
        given = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        gradients = [one.grad for one in given if one.grad is not None]
        if not gradients:
            return torch.tensor(0.0)
        with torch.no_grad():
            norms = torch.stack([torch.linalg.vector_norm(one, self.norm_type) for one in gradients])
            total = torch.linalg.vector_norm(norms, self.norm_type)
            factor = torch.clamp(self.max_norm / (total + self._TINY), max=1.0)
            for one in gradients:
                one.mul_(factor.to(one.dtype))
        return total
