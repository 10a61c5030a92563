# SPDX-License-Identifier: Apache-2.0
"""Modules that train with 8-bit floats.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch.hpex.experimental.transformer_engine import distributed, fp8, recipe
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.transformer_engine.attention import FusedAttention
from hccl_torch_hpu.transformer_engine.linear import Linear
from hccl_torch_hpu.transformer_engine.state import fp8_autocast

# Programs recognise these layers by the name of their module.
FusedAttention.__module__ = Linear.__module__ = __name__

__all__ = ["FusedAttention", "Linear", "distributed", "fp8", "fp8_autocast", "recipe"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      LayerNormLinear="use torch.nn.LayerNorm and Linear", LayerNorm="use torch.nn.LayerNorm")
