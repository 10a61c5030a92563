# SPDX-License-Identifier: Apache-2.0
"""Uses tensors of unwaited collectives in every way at once: ``order.py [killed]``. With "killed", rank 1 kills itself."""
import os
import signal
import sys

import torch
import torch.distributed as dist

_ELEMENTS = 1 << 20
_ROUNDS = 20


def main() -> None:
    dist.init_process_group("hccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    if sys.argv[1:] == ["killed"]:
        mine = torch.ones(_ELEMENTS, device="hpu")
        dist.all_reduce(mine)
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(mine)
    other = dist.new_group(range(world))
    total = world * (world + 1) // 2
    for round_ in range(_ROUNDS):
        tensor = torch.full((_ELEMENTS,), float(rank + 1), device="hpu")
        gathered = torch.empty(world * _ELEMENTS, device="hpu")
        dist.all_reduce(tensor, async_op=True)
        doubled = tensor * 2  # reads the result
        assert doubled[round_].item() == 2 * total and doubled.sum().item() == 2 * total * _ELEMENTS
        dist.all_reduce(tensor, async_op=True)
        tensor.zero_()  # writes to it
        assert not tensor.any()
        tensor.fill_(rank)
        dist.all_gather_into_tensor(gathered, tensor, async_op=True)
        tensor.fill_(-1)  # writes to an input
        assert gathered.view(world, -1)[:, -1].tolist() == list(range(world))
        dist.all_reduce(gathered, async_op=True)
        dist.broadcast(gathered[:7], src=0, group=other, async_op=True)  # another group, the same memory
        assert gathered[:7].cpu().tolist() == [0.0] * 7 and gathered[-1].item() == world * (world - 1)
        del tensor, gathered  # frees memory of what is under way
    dist.barrier()
    dist.destroy_process_group()
    print("in order")


if __name__ == "__main__":
    main()
