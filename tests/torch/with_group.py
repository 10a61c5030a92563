# SPDX-License-Identifier: Apache-2.0
"""Runs a program as __main__ on every rank, after the default group has been made with the backend hccl.

torchrun --standalone --nproc-per-node 2 with_group.py program.py

Accelerate's scripts for several ranks build DistributedDataParallel with ``device_ids``, which it takes for modules on
accelerators only. Here it ignores them for modules on CPUs; all else is as it comes.
"""
import runpy
import sys

import torch
import torch.distributed as dist

import hccl_torch


class DistributedDataParallel(torch.nn.parallel.DistributedDataParallel):
    def __init__(self, module, device_ids=None, output_device=None, **options):
        if all(one.device.type == "cpu" for one in module.parameters()):
            device_ids = output_device = None
        super().__init__(module, device_ids=device_ids, output_device=output_device, **options)


def main() -> None:
    dist.init_process_group("hccl")
    torch.nn.parallel.DistributedDataParallel = DistributedDataParallel
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    assert hccl_torch.stats(), "the program has not used the backend"
    print("the program has ended")


if __name__ == "__main__":
    main()
