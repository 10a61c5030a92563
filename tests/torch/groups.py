# SPDX-License-Identifier: Apache-2.0
"""Tests subgroups, groups that are destroyed and created again, and forks. Run on every rank."""
import os
import threading
import time

import torch
import torch.distributed as dist

import hccl_torch
from operations import raises
from training import compare


def subgroups() -> None:
    """Disjoint and overlapping groups must work, although each rank is a member of different
    groups."""
    size, rank = dist.get_world_size(), dist.get_rank()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    crossed = dist.new_group([1, 2])
    odd = dist.new_group([3, 1])
    for _ in range(5):
        own = pairs[rank // 2]
        tensor = torch.full((1000,), float(rank))
        dist.all_reduce(tensor, group=own)
        assert tensor[0] == (1 if rank < 2 else 5)
        if rank in (1, 2):
            tensor = torch.full((10,), float(rank))
            dist.all_reduce(tensor, group=crossed)
            assert tensor[0] == 3
        if rank in (1, 3):
            tensor = torch.full((10,), float(rank))
            dist.broadcast(tensor, 3, group=odd)
            assert tensor[0] == 3 and dist.get_rank(odd) == [1, 3].index(rank)
        everybody = torch.ones(1)
        dist.all_reduce(everybody)
        assert everybody.item() == size
    for group, members in ((pairs[0], (0, 1)), (pairs[1], (2, 3)), (crossed, (1, 2)), (odd, (1, 3))):
        if rank in members:
            dist.destroy_process_group(group)


def two_groups_at_once() -> None:
    """Operations of two groups of the same ranks must work concurrently, on one thread and on
    two."""
    groups = [dist.new_group(), dist.new_group()]
    rank = dist.get_rank()
    works = [dist.all_reduce(torch.full((50_000,), float(rank)), group=groups[i % 2], async_op=True) for i in range(40)]
    for work in reversed(works):
        work.wait()
    errors = []

    def reduce(group) -> None:
        try:
            for _ in range(100):
                tensor = torch.full((1000,), 1.0)
                dist.all_reduce(tensor, group=group)
                assert tensor[0] == dist.get_world_size()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=reduce, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def held_resources() -> tuple[int, int, int]:
    """Returns the numbers of this process's descriptors and threads, and of files in /dev/shm."""
    status = open("/proc/self/status").read()
    threads = int(next(line for line in status.splitlines() if line.startswith("Threads")).split()[1])
    return len(os.listdir("/proc/self/fd")), threads, len(os.listdir("/dev/shm"))


def require_no_leak(action) -> None:
    """Calls the action three times to warm up, and then twenty times. Requires that the twenty calls
    leave at most two more resources of each kind. Waits up to ten seconds, because the server of a
    group's unique id keeps its resources until the slowest rank has left."""
    for _ in range(3):
        action()
    before = held_resources()
    for _ in range(20):
        action()
    deadline = time.monotonic() + 10
    while any(one > other + 2 for one, other in zip(held_resources(), before)) and time.monotonic() < deadline:
        time.sleep(0.01)
    after = held_resources()
    assert all(one <= other + 2 for one, other in zip(after, before)), (before, after)


def groups_leak_nothing() -> None:
    def use_group() -> None:
        group = dist.new_group()
        tensor = torch.ones(1000)
        dist.all_reduce(tensor, group=group, async_op=True).get_future().wait()
        dist.destroy_process_group(group)

    require_no_leak(use_group)


def reinitialised() -> None:
    """Destroying and recreating the default group twenty times must leak no resources."""
    def again() -> None:
        tensor = torch.ones(1000)
        dist.all_reduce(tensor, async_op=True).get_future().wait()
        assert tensor[0] == dist.get_world_size()
        dist.destroy_process_group()
        dist.init_process_group("hccl")

    require_no_leak(again)


def start_child(action) -> int:
    """Forks a child that exits with 0 after the action, or with 3 after an error. Returns the
    child's pid."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", flush=True)
            os._exit(3)
    return child


def exit_code(child: int) -> int:
    """Waits for a child. Returns its exit code, or the negated number of the signal that killed
    it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(action) -> int:
    return exit_code(start_child(action))


def forks() -> None:
    """A child must get a clear error from a collective, and the parent must keep working."""
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    assert in_child(lambda: dist.all_reduce(torch.ones(10))) == 3
    assert in_child(lambda: torch.ones(100_000).mul_(2).sum().item()) == 0
    dist.all_reduce(tensor)
    assert tensor[0] == dist.get_world_size() ** 2


def forks_with_shared_memory() -> None:
    """Children must see tensors as they were at the fork, even if the parent changes them later."""
    hccl_torch.install_allocator()
    tensor = torch.arange(1_000_000, dtype=torch.float32)
    assert hccl_torch.memory_stats()["used_bytes"] >= 4_000_000

    def look() -> None:
        import time

        time.sleep(0.2)  # the parent writes in the meantime
        assert tensor[999_999].item() == 999_999
        tensor.add_(1)
        other = torch.ones(1_000_000)
        assert (tensor + other)[0].item() == 2

    for _ in range(2):
        child = start_child(look)
        before = tensor.clone()
        tensor.fill_(-1)
        assert exit_code(child) == 0
        tensor.copy_(before)
    total = tensor.clone()
    dist.all_reduce(total)
    assert torch.equal(total, tensor * dist.get_world_size())


def forks_during_allocations() -> None:
    """Forks must work while other threads allocate and free shared memory."""
    hccl_torch.install_allocator()
    stopping = threading.Event()

    def allocate_once() -> None:
        torch.ones(20_000).add_(1)

    def allocate() -> None:
        while not stopping.is_set():
            allocate_once()

    # A child forked during the first call would wait forever for the initialisation of libtorch's
    # function-local statics.
    allocate_once()
    assert bool((torch.full((20_000,), 3.0) == 3).all())
    threads = [threading.Thread(target=allocate) for _ in range(3)]
    for thread in threads:
        thread.start()
    kept = torch.full((20_000,), 3.0)
    for _ in range(20):
        assert in_child(lambda: os._exit(0 if bool((kept == 3).all()) else 4)) == 0
    stopping.set()
    for thread in threads:
        thread.join()


def child_exits_after_parent_receives() -> None:
    """A child must exit normally even if its parent received from any rank, and by tag, before the
    fork. A receive in the child must fail."""
    rank = dist.get_rank()
    tensor = torch.ones(3)
    if rank == 0:
        dist.recv(tensor)
        dist.recv(tensor, 1, tag=5)
    else:
        dist.send(tensor, 0)
        dist.send(tensor, 0, tag=5)
    child = os.fork()
    if child == 0:
        import sys

        try:
            dist.irecv(tensor)
        except dist.DistBackendError as error:
            assert "in a forked process" in str(error)
            sys.exit(5)
        sys.exit(6)
    assert exit_code(child) == 5
    dist.barrier()


class Numbers(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.data = torch.arange(100_000, dtype=torch.float32).view(100, 1000)

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.data[index] * 2


def allocator_with_other_features(folder: str) -> None:
    """DataLoader workers, multiprocessing, shared memory, numpy, pickling and saving must work with
    the allocator installed."""
    import copy
    import pickle

    import torch.multiprocessing as multiprocessing

    hccl_torch.install_allocator(least_bytes=1024)
    hccl_torch.install_allocator()
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=10, num_workers=2)
    for number, batch in enumerate(loader):
        assert torch.equal(batch, torch.arange(100_000).view(100, 1000)[10 * number:10 * number + 10] * 2.0)
        dist.all_reduce(batch)
    tensor = torch.randn(300, 1000)
    copies = [pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), torch.from_numpy(tensor.numpy().copy())]
    torch.save(tensor, f"{folder}/{dist.get_rank()}.pt")
    copies.append(torch.load(f"{folder}/{dist.get_rank()}.pt"))
    copies.append(torch.load(f"{folder}/{dist.get_rank()}.pt", mmap=True))
    assert all(torch.equal(one, tensor) for one in copies)
    assert tensor.numpy().ctypes.data == tensor.data_ptr()
    shared = tensor.clone().share_memory_()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=shared.fill_, args=(5.0,))
    process.start()
    process.join()
    assert process.exitcode == 0 and bool((shared == 5).all())
    queue, taken = context.SimpleQueue(), context.Event()
    process = context.Process(target=lambda: (queue.put(tensor * 2), taken.wait(30)))
    process.start()
    assert torch.equal(queue.get(), tensor * 2)
    taken.set()
    process.join()
    total = tensor.clone()
    dist.all_reduce(total)
    compare()
    assert hccl_torch.memory_stats()["reused"] > 0


def destroyed_with_pending_receives() -> None:
    """Destroying a group must fail its unmatched receives and complete their futures."""
    peer = 1 - dist.get_rank()
    for arguments in ({"src": peer}, {"src": None}, {"src": peer, "tag": 5}):
        group, ended = dist.new_group(), []
        work = dist.irecv(torch.zeros(1), group=group, **arguments)
        work.get_future().add_done_callback(ended.append)
        dist.barrier()
        dist.destroy_process_group(group)
        raises(dist.DistBackendError, "failed", work.wait)
        assert ended, arguments


def destroyed_with_a_pending_message() -> None:
    """A message must arrive even if its sender destroys the group long before the receive."""
    group = dist.new_group()
    tensor = torch.full((100_000,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.isend(tensor, 1, group=group)
    else:
        time.sleep(6)
        dist.recv(tensor, 0, group=group)
        assert bool((tensor == 0).all())
    dist.destroy_process_group(group)
