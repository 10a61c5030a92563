# SPDX-License-Identifier: Apache-2.0
"""Uses tensors in various ways while collectives and messages on them are pending. Rank 1 kills
itself at the end."""
import os
import signal
import threading
import time

import torch
import torch.distributed as dist

_ELEMENTS = 1 << 20
_ROUNDS = 20


def replace_memory_in_use(rank: int, total: float) -> None:
    """Replaces or frees a tensor's memory while a collective uses it, then allocates memory."""
    other = torch.zeros(4, device="hpu")
    for take in (lambda tensor: tensor.set_(other), lambda tensor: setattr(tensor, "data", other),
                 lambda tensor: tensor.untyped_storage().resize_(0)):
        tensor = torch.full((_ELEMENTS,), float(rank + 1), device="hpu")
        if rank == 1:
            time.sleep(0.3)  # the other ranks' calls are in progress
        work = dist.all_reduce(tensor, async_op=True)
        kept = tensor.view(-1) if rank == 1 else None
        if rank != 1:
            take(tensor)
        host = torch.full((_ELEMENTS,), 100.0)
        dist.all_reduce(host)
        work.wait()
        assert kept is None or (kept == total).all(), kept
        assert (host == 100.0 * dist.get_world_size()).all(), host


def grow_during_a_collective(rank: int, total: float) -> None:
    """Grows storages while collectives write to them."""
    for grow in (lambda tensor: tensor.resize_(2 * _ELEMENTS),
                 lambda tensor: tensor.untyped_storage().resize_(8 * _ELEMENTS)):
        tensor = torch.full((_ELEMENTS,), float(rank + 1), device="hpu")
        if rank == 1:
            time.sleep(0.3)
        dist.all_reduce(tensor, async_op=True)
        grow(tensor)
        assert (tensor[:_ELEMENTS] == total).all(), tensor


def read_results_copied_back(rank: int, total: float) -> None:
    """Reads the result of a collective on a strided tensor while another thread starts a second
    collective. When the first one ends, the backend copies its result from a contiguous tensor into
    the strided tensor."""
    small = torch.ones(4, device="hpu")
    for _ in range(_ROUNDS):
        base = torch.full((1000, 1000), float(rank + 1), device="hpu")
        dist.all_reduce(base.t(), async_op=True)
        time.sleep(0.02)
        thread = threading.Thread(target=lambda: dist.all_reduce(small, async_op=True))
        thread.start()
        assert base[-1, -1].item() == total
        thread.join()


def write_to_pending_message(rank: int, total: float) -> None:
    """Sends a tensor on rank 0, and then receives or reduces into the same tensor before rank 1 has
    received the message."""
    def receive(tensor: torch.Tensor, other: torch.Tensor) -> None:
        dist.irecv(tensor, 1) if rank == 0 else dist.isend(other, 0)

    def reduce(tensor: torch.Tensor, other: torch.Tensor) -> None:
        dist.all_reduce(tensor if rank == 0 else other, async_op=True)

    for write, result in ((receive, 7.0), (reduce, 8.0)):
        tensor = torch.full((_ELEMENTS,), 1.0, device="hpu")
        other = torch.full((_ELEMENTS,), 7.0, device="hpu")
        if rank == 0:
            dist.isend(tensor, 1)
            write(tensor, other)
            assert (tensor == result).all(), tensor
        else:
            received = torch.empty_like(tensor)
            write(tensor, other)
            time.sleep(0.3)
            dist.recv(received, 0)
            assert (received == 1.0).all(), received
        dist.barrier()


def send_to_itself(rank: int) -> None:
    """Sends tensors to this rank itself, before and after it posts the receive, with and without a
    tag."""
    for tag in (0, 3):
        for receive_first in (True, False):
            sent = torch.full((_ELEMENTS,), float(rank + 5), device="hpu")
            received = torch.zeros(_ELEMENTS, device="hpu")
            calls = [lambda: dist.irecv(received, rank, tag=tag), lambda: dist.isend(sent, rank, tag=tag)]
            for work in [call() for call in (calls if receive_first else reversed(calls))]:
                work.wait()
            assert (received == rank + 5).all(), (tag, receive_first, received)


def use_pending_receives(rank: int, total: float) -> None:
    """Uses tensors while receives into them, by tag or from any rank, are pending."""
    uses = ((lambda tensor: tensor.mul_(2), 10.0), (lambda tensor: dist.all_reduce(tensor, op=dist.ReduceOp.AVG), 5.0),
            (lambda tensor: dist.broadcast(tensor, 1), 5.0))
    for asked in ({"src": 0, "tag": 5}, {"src": None, "tag": 0}, {"src": None, "tag": 5}):
        for use, result in uses:
            tensor = torch.full((_ELEMENTS,), 5.0 if rank == 0 else 0.0, device="hpu")
            if rank == 0:
                time.sleep(0.1)
                dist.send(tensor, 1, tag=asked["tag"])
            else:
                dist.irecv(tensor, **asked)
            use(tensor)
            assert (tensor == result).all(), (asked, result, tensor)


def main() -> None:
    dist.init_process_group("hccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    other = dist.new_group(range(world))
    total = world * (world + 1) // 2
    for round_ in range(_ROUNDS):
        tensor = torch.full((_ELEMENTS,), float(rank + 1), device="hpu")
        gathered = torch.empty(world * _ELEMENTS, device="hpu")
        dist.all_reduce(tensor, async_op=True)
        doubled = tensor * 2  # reads the result
        assert doubled[round_].item() == 2 * total and doubled.sum().item() == 2 * total * _ELEMENTS
        dist.all_reduce(tensor, async_op=True)
        tensor.zero_()  # writes to the result
        assert not tensor.any()
        tensor.fill_(rank)
        dist.all_gather_into_tensor(gathered, tensor, async_op=True)
        tensor.fill_(-1)  # writes to an input
        assert gathered.view(world, -1)[:, -1].tolist() == list(range(world))
        dist.all_reduce(gathered, async_op=True)
        dist.broadcast(gathered[:7], src=0, group=other, async_op=True)  # the same memory
        assert gathered[:7].cpu().tolist() == [0.0] * 7 and gathered[-1].item() == world * (world - 1)
        del tensor, gathered  # frees memory that operations use
    replace_memory_in_use(rank, total)
    grow_during_a_collective(rank, total)
    read_results_copied_back(rank, total)
    write_to_pending_message(rank, total)
    send_to_itself(rank)
    use_pending_receives(rank, total)
    print("in order", flush=True)
    mine = torch.ones(_ELEMENTS, device="hpu")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun may send it before the traceback is printed
    dist.all_reduce(mine)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(mine)
    print("not reached")


if __name__ == "__main__":
    main()
