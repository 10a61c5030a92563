# SPDX-License-Identifier: Apache-2.0
"""Unchanged CUDA programs can run only on a real Gaudi: the emulation does not translate CUDA calls.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
raise ImportError("habana_frameworks.torch.gpu_migration is not part of this emulation of Gaudi (hccl-torch-hpu); "
                  "write hpu instead of cuda in the program, or run it on a Gaudi", name=__name__)
