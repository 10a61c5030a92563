# SPDX-License-Identifier: Apache-2.0
"""Importing this package registers the device, the backends and the operations that programs for Gaudi use.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu import compile_backend, context_parallel
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.numerics import ops

ops.register()
context_parallel.offer_distributed_attention()
if not compile_backend.is_entry_point():
    compile_backend.register()

from habana_frameworks.torch import hpu  # noqa: E402
from habana_frameworks.torch import core, distributed, hpex, utils  # noqa: E402
from habana_frameworks.torch.distributed import hccl  # noqa: E402,F401

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      gpu_migration="write hpu instead of cuda in the program: the emulation translates no CUDA calls")
