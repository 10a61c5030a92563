# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers the backend "hpu_backend" of torch.compile.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch.dynamo.compile_backend import backends, config

from hccl_torch_hpu.missing import missing

__all__ = ["backends", "config"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
