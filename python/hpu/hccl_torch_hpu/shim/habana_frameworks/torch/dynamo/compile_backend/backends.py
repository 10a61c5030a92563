# SPDX-License-Identifier: Apache-2.0
"""The backend "hpu_backend" of torch.compile.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.compile_backend import hpu_backend, register
from hccl_torch_hpu.missing import missing

register()

__all__ = ["hpu_backend"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
