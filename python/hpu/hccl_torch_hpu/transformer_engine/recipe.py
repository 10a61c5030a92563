# SPDX-License-Identifier: Apache-2.0
"""Recipes for training with 8-bit floats: the types, and the computation of the scales."""
from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, Union

import torch


class Format(enum.Enum):
    """The types of the forward pass and of the backward pass."""

    E4M3 = (torch.float8_e4m3fn, torch.float8_e4m3fn)
    E5M2 = (torch.float8_e5m2, torch.float8_e5m2)
    HYBRID = (torch.float8_e4m3fn, torch.float8_e5m2)

    @property
    def forward_type(self) -> torch.dtype:
        """Returns the type of activations and weights."""
        return self.value[0]

    @property
    def backward_type(self) -> torch.dtype:
        """Returns the type of gradients."""
        return self.value[1]


@dataclasses.dataclass
class DelayedScaling:
    """A recipe that computes scales from the largest magnitudes of earlier steps.

    Args:
        margin: scales leave headroom for values ``2 ** margin`` times as large.
        interval: the number of steps between two computations of the scales.
        fp8_format: the types.
        amax_history_len: the number of steps whose magnitudes are kept.
        amax_compute_algo: "max" of the history, "most_recent", or a function of the history, ``[steps, tensors]``.
        scaling_factor_compute_algo: a function that returns the scales, given the magnitudes, the old scales, the
            types' largest values and the recipe; if it is None, the largest value / magnitude / ``2 ** margin``.
        override_linear_precision: must be (False, False, False).
        reduce_amax: uses the largest magnitudes over all ranks of the group.
    """

    margin: int = 0
    interval: int = 1
    fp8_format: Format = Format.HYBRID
    amax_history_len: int = 1
    amax_compute_algo: Union[str, Callable[[torch.Tensor], torch.Tensor]] = "most_recent"
    scaling_factor_compute_algo: Callable[..., Any] | None = None
    override_linear_precision: tuple[bool, bool, bool] = (False, False, False)
    reduce_amax: bool = True

    def __post_init__(self) -> None:
        if self.interval < 1 or self.amax_history_len < 1:
            raise ValueError("DelayedScaling: interval and amax_history_len must be at least 1")
        if not callable(self.amax_compute_algo) and self.amax_compute_algo not in ("max", "most_recent"):
            raise ValueError(f"DelayedScaling: amax_compute_algo is '{self.amax_compute_algo}'; use 'max', "
                             "'most_recent' or a function")
        if any(self.override_linear_precision):
            raise NotImplementedError("DelayedScaling: override_linear_precision is not supported; leave it at its "
                                      "default")
