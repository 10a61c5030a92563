# SPDX-License-Identifier: Apache-2.0
"""The memory of the emulated device: used and free bytes."""
from __future__ import annotations

from typing import Any

from hccl_torch_hpu import _C


def _check(device: Any) -> None:
    from hccl_torch_hpu.device import _index_of

    _index_of(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Returns the free and the total memory of the device, in bytes."""
    _check(device)
    return _C.memory_info()


def memory_allocated(device: Any = None) -> int:
    """Returns the number of bytes that tensors of this process hold."""
    _check(device)
    return _C.memory_statistics()["allocated_bytes.current"]


def max_memory_allocated(device: Any = None) -> int:
    """Returns the maximum number of bytes that tensors have held since the start or the last
    ``reset_peak_memory_stats()``."""
    _check(device)
    return _C.memory_statistics()["allocated_bytes.peak"]


def memory_reserved(device: Any = None) -> int:
    """Returns the number of bytes that large tensors hold, plus the bytes that are reserved for small tensors."""
    _check(device)
    return _C.memory_statistics()["reserved_bytes.current"]


def max_memory_reserved(device: Any = None) -> int:
    """Returns the maximum of ``memory_reserved()``."""
    _check(device)
    return _C.memory_statistics()["reserved_bytes.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the maxima to the current values."""
    _check(device)
    _C.reset_peaks()


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Resets the counts of allocations, releases and failed allocations."""
    _check(device)
    _C.reset_accumulated()


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns the statistics of the device's memory, in bytes unless the name says otherwise.

    ``Limit`` is the size of the device's memory, ``InUse`` the size of all tensors, and ``MaxInUse`` the peak of
    ``InUse``. Names with ``Allocs`` or ``Frees`` count blocks. The names in lower case are those of
    ``torch.cuda.memory_stats()``.
    """
    _check(device)
    found = _C.memory_statistics()
    stats = {
        "Limit": _C.memory_info()[1],
        "InUse": found["allocated_bytes.current"],
        "MaxInUse": found["allocated_bytes.peak"],
        "NumAllocs": found["allocation.allocated"],
        "NumFrees": found["allocation.freed"],
        "ActiveAllocs": found["allocation.current"],
        "TotalSystemAllocs": found["allocation.allocated"],
        "TotalSystemFrees": found["allocation.freed"],
        "TotalActiveAllocs": found["allocation.current"],
        "num_ooms": found["num_ooms"],
    }
    for kind in ("allocation", "allocated_bytes", "reserved_bytes"):
        for which in ("current", "peak", "allocated", "freed"):
            stats[f"{kind}.all.{which}"] = found[f"{kind}.{which}"]
    return stats


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Returns the statistics of the device's memory as text, in a shorter form if ``abbreviated``."""
    stats = memory_stats(device)
    mib = 1 << 20
    lines = [
        "HPU memory (emulated)",
        f"  limit      {stats['Limit'] / mib:12.1f} MiB",
        f"  in use     {stats['InUse'] / mib:12.1f} MiB",
        f"  peak       {stats['MaxInUse'] / mib:12.1f} MiB",
    ]
    if not abbreviated:
        lines += [
            f"  reserved   {stats['reserved_bytes.all.current'] / mib:12.1f} MiB",
            f"  blocks     {stats['ActiveAllocs']:12d}",
            f"  allocated  {stats['NumAllocs']:12d} times, {stats['num_ooms']} failures",
        ]
    return "\n".join(lines)


def empty_cache() -> None:
    """Frees the cached memory."""
    _C.empty_cache()
