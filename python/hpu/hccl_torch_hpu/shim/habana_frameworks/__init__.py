# SPDX-License-Identifier: Apache-2.0
"""The packages that programs for Gaudi import, implemented for the emulated device.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu import vendor
from hccl_torch_hpu.missing import missing

vendor.refuse_beside_vendor()

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
