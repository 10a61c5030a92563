# SPDX-License-Identifier: Apache-2.0
"""Recipes for training with 8-bit floats.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.transformer_engine.recipe import DelayedScaling, Format

__all__ = ["DelayedScaling", "Format"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
