# SPDX-License-Identifier: Apache-2.0
"""The PyTorch distributed backend "hccl" for tensors in CPU memory.

``import torch`` registers the backend, so a program only needs to name it::

    torch.distributed.init_process_group("hccl")

This module's functions place tensors in memory that the ranks share, and report call and byte counts.
"""
from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["empty", "empty_cache", "initialize_distributed_hpu", "install_allocator", "memory_stats", "reset_stats", "stats"]


def empty(*size: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns a CPU tensor with undefined contents in memory that the ranks of a host share.

    Collectives read and write the tensor in place, without the two copies that other memory needs. The tensor can be
    used like any CPU tensor. A forked child gets a private copy of the tensor. If no shared memory is left, the tensor
    is in ordinary memory.

    Args:
        size: the extents, as for ``torch.empty``: numbers, or one sequence.
        dtype: the element type; torch's default type if it is None.

    Raises:
        RuntimeError: if an extent is negative.
    """
    import torch

    from hccl_torch import _C

    extents = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return _C.empty(list(extents), dtype or torch.get_default_dtype())


def install_allocator(least_bytes: int = 32768) -> None:
    """Makes PyTorch allocate all later CPU tensors of this process in memory that the ranks of a host share.

    Collectives then use gradients, activations and messages in place. A new tensor reuses freed memory of its size if
    there is any, which makes training faster even on one rank. Existing tensors stay where they are, so call this
    function first. It has two costs. Freed memory stays cached: up to 1 GiB, or up to the amount in use if that is
    more. ``fork`` copies all memory in use before it returns. File-backed tensors, ``numpy.empty`` and
    ``share_memory_()`` are not affected. If no emulated device can be acquired, or its memory is used up, new tensors
    are in ordinary memory.

    Args:
        least_bytes: the minimum size in bytes; smaller tensors stay in ordinary memory. A second call changes this
            minimum.
    """
    from hccl_torch import _C

    _C.install_allocator(least_bytes)


def memory_stats() -> dict[str, int]:
    """Returns the state of the shared memory: the bytes that tensors use (``used_bytes``), the bytes cached for reuse
    (``cached_bytes``), the number of allocations so far (``allocations``), and how many of these came from the cache
    (``reused``)."""
    from hccl_torch import _C

    return _C.memory()


def empty_cache() -> None:
    """Frees the cached shared memory."""
    from hccl_torch import _C

    _C.trim()


def stats() -> dict[str, dict[str, int]]:
    """Returns the counts of this process's calls to the backend, keyed by the ``torch.distributed`` function.

    Each entry has ``calls``; ``bytes``, the size of the input tensors (for calls without inputs, of
    the filled tensors); ``zero_copy``, the calls with only contiguous tensors in shared memory; and
    ``staged``, the other calls. Each call inside a coalesced operation is counted separately.
    ``HCCL_TORCH_STATS=1`` prints the counts to stderr when the process exits.
    """
    from hccl_torch import _C

    return _C.counts()


def reset_stats() -> None:
    """Resets the counts that ``stats()`` returns."""
    from hccl_torch import _C

    _C.reset_counts()


def initialize_distributed_hpu(
    world_size: int | None = None, rank: int | None = None, local_rank: int | None = None
) -> tuple[int, int, int]:
    """For programs started by mpirun: sets the environment variables that ``init_process_group`` reads.

    Replaces the function of the same name that programs for Gaudi call before they create the group. Sets
    ``WORLD_SIZE``, ``RANK`` and ``LOCAL_RANK`` to the arguments. For an argument that is None, uses the value from Open
    MPI's mpirun, else the variable's old value, else 1, 0 or 0, respectively. Sets ``MASTER_ADDR`` to localhost and
    ``MASTER_PORT`` to 12345 unless they are set. Sets ``ID`` to the rank. Sets ``HLS_MODULE_ID`` to the entry of
    ``HABANA_VISIBLE_MODULES`` for the local rank, or to the local rank if that variable lists no numbers.

    Returns:
        The number of ranks, this rank, and the local rank.
    """
    numbers = []
    for name, given, theirs, alone in (("WORLD_SIZE", world_size, "SIZE", 1), ("RANK", rank, "RANK", 0),
                                       ("LOCAL_RANK", local_rank, "LOCAL_RANK", 0)):
        said = os.environ.get(f"OMPI_COMM_WORLD_{theirs}", os.environ.get(name, str(alone)))
        numbers.append(int(said) if given is None else given)
        os.environ[name] = str(numbers[-1])
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "12345")
    modules = os.environ.get("HABANA_VISIBLE_MODULES", "")
    visible = [one for one in modules.split(",") if one.strip().isdigit()]
    os.environ["HLS_MODULE_ID"] = visible[numbers[2] % len(visible)].strip() if visible else str(numbers[2])
    os.environ["ID"] = str(numbers[1])
    return numbers[0], numbers[1], numbers[2]


_is_set_up = False


def _set_up() -> None:
    """Applies the environment's settings before the first group is created."""
    global _is_set_up
    if _is_set_up:
        return
    _is_set_up = True
    _quiesce_at_exit()
    # Lets the backend allocate the buckets of DistributedDataParallel.
    os.environ.setdefault("DDP_DISABLE_COMM_MEM", "0")
    if os.environ.get("HCCL_TORCH_ALLOCATOR") == "1":
        install_allocator()
    if os.environ.get("HCCL_TORCH_STATS") == "1":
        import atexit

        atexit.register(_print_stats)


_quiesces_at_exit = False


def _quiesce_at_exit() -> None:
    """Registers an exit function that keeps futures from running callbacks during interpreter
    shutdown. Such callbacks would hang, because they run on the extension's threads and need the
    GIL. Exit functions run in reverse order of registration. ``import torch`` registers this
    function early, so it runs after the program's own exit functions."""
    global _quiesces_at_exit
    if _quiesces_at_exit:
        return
    _quiesces_at_exit = True
    import atexit

    def quiesce() -> None:
        extension = sys.modules.get("hccl_torch._C")
        if extension is not None:
            extension.quiesce()

    atexit.register(quiesce)


def _print_stats() -> None:
    rank = os.environ.get("RANK", "?")
    for name, one in sorted(stats().items()):
        print(f"hccl_torch: rank {rank}: {name}: {one['calls']} calls, {one['bytes']} bytes, {one['zero_copy']} without "
              f"a copy, {one['staged']} staged", file=sys.stderr)


def _create_process_group(options, backend_options):
    """Loads the extension, and creates the group's backend. Blocks until the other ranks have joined."""
    from hccl_torch import _C, _accelerate

    _set_up()
    _accelerate.warn_if_not_distributed(options.group_size)
    return _C.ProcessGroupHccl(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        list(options.global_ranks_in_group),
    )


def _autoload() -> None:
    """Registers the backend with torch.distributed. ``import torch`` calls this function, so the function raises
    nothing, starts no thread and loads no library."""
    try:
        import torch.distributed as dist

        if not dist.is_available():
            return
        if "hccl" in dist.Backend.backend_list:
            warnings.warn("hccl_torch: another package has registered the backend \"hccl\", so hccl_torch does not "
                          "register its own; uninstall that package to use hccl_torch", stacklevel=2)
            return
        # The device "hpu" exists only if the environment requests its emulation.
        devices = ["cpu", "hpu"] if os.environ.get("HCCL_EMU_HPU") == "1" else ["cpu"]
        _quiesce_at_exit()
        dist.Backend.register_backend("hccl", _create_process_group, extended_api=True, devices=devices)
        if os.environ.get("HCCL_TORCH_PATCH_ACCELERATE") == "1":
            from hccl_torch import _accelerate

            _accelerate.patch_when_imported()
    except Exception as error:  # import torch must not fail
        warnings.warn(f"hccl_torch: cannot register the backend \"hccl\": {error}", stacklevel=2)
