# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.transformer_engine.state import activation_checkpointing

__all__ = ["activation_checkpointing"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      checkpoint="use torch.utils.checkpoint.checkpoint")
