# SPDX-License-Identifier: Apache-2.0
"""Measures models, and runs their linear layers with 8-bit floats.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu import vendor
from hccl_torch_hpu.missing import missing

vendor.refuse_beside_vendor()

from hccl_torch_hpu.quantization.toolkit import finish_measurements, prep_model  # noqa: E402

__all__ = ["finish_measurements", "prep_model"]

__getattr__ = missing(__name__, "see the configuration of prep_model in hccl_torch_hpu.quantization.toolkit")
