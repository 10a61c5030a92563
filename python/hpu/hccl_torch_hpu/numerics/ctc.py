# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification."""
from __future__ import annotations

import torch
from torch.nn import functional


class CTCLoss:
    """The loss of ``torch.nn.functional.ctc_loss``, with the arguments in the order of a Gaudi's kernel."""

    @staticmethod
    def apply(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor,
              blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> torch.Tensor:
        """Returns the loss: one value, or one for each sequence if ``reduction`` is "none".

        Args:
            log_probs: logarithms of probabilities, ``[time, batch, classes]``.
            targets: ``[batch, length]``, or the concatenated targets of all sequences.
        """
        return functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
