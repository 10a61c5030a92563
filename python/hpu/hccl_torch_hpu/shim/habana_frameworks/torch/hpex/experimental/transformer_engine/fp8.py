# SPDX-License-Identifier: Apache-2.0
"""The state of training with 8-bit floats.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.transformer_engine.state import FP8GlobalStateManager, fp8_autocast, is_fp8_available

__all__ = ["FP8GlobalStateManager", "fp8_autocast", "is_fp8_available"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
