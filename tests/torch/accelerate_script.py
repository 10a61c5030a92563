# SPDX-License-Identifier: Apache-2.0
"""Creates an hccl group, and runs one of Accelerate's own scripts in it as __main__ on every rank.

torchrun --standalone --nproc-per-node 2 accelerate_script.py test_ops.py

The scripts are for machines with accelerators. On CPUs, PyTorch and Accelerate refuse four features
with every backend. This program permits them: ``PartialState()`` for several processes,
``device_ids`` of DistributedDataParallel (ignored), hooks that compress to bf16, and joining uneven
inputs. Everything else is unchanged.
"""
import contextlib
import runpy
import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator, DistributedType, PartialState

import hccl_torch


class DistributedDataParallel(torch.nn.parallel.DistributedDataParallel):
    def __init__(self, module, device_ids=None, output_device=None, **options):
        if all(one.device.type == "cpu" for one in module.parameters()):
            device_ids = output_device = None
        super().__init__(module, device_ids=device_ids, output_device=output_device, **options)

    def _check_comm_hook(self, hook):
        assert callable(hook)


join_on_accelerators = Accelerator.join_uneven_inputs


@contextlib.contextmanager
def join_uneven_inputs(accelerator, *arguments, **named):
    kind = accelerator.state.distributed_type
    if kind == DistributedType.MULTI_CPU:
        accelerator.state.distributed_type = DistributedType.MULTI_GPU
    try:
        with join_on_accelerators(accelerator, *arguments, **named):
            accelerator.state.distributed_type = kind
            yield
    finally:
        accelerator.state.distributed_type = kind


def main() -> None:
    dist.init_process_group("hccl")
    assert PartialState(cpu=True).num_processes == dist.get_world_size() > 1
    torch.nn.parallel.DistributedDataParallel = DistributedDataParallel
    Accelerator.join_uneven_inputs = join_uneven_inputs
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    counts = {name: one["calls"] for name, one in hccl_torch.stats().items()}
    assert any(name != "barrier" for name in counts), counts
    print(f"the script has ended after {sum(counts.values())} collectives and messages", flush=True)


if __name__ == "__main__":
    main()
