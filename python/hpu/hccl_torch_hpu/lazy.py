# SPDX-License-Identifier: Apache-2.0
"""Steps in lazy mode. The emulated device executes each operation immediately, so ``mark_step`` has no operations to
execute. It counts the step and runs the step's closures. In lazy mode, the device records each step's operations. A
step whose sequence of operations, shapes and types differs from that of every earlier step counts as a graph that a
Gaudi would compile."""
from __future__ import annotations

import os
import threading
from typing import Any, Callable

_lock = threading.Lock()
_steps = 0
_closures: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def is_lazy() -> bool:
    """Returns True if ``PT_HPU_LAZY_MODE`` is 1. The emulation's default is eager mode."""
    return os.environ.get("PT_HPU_LAZY_MODE", "0") == "1"


def mark_step() -> int:
    """Ends a step: runs the closures that were added since the last step, in order.

    Blocks until all of them have returned. An exception from a closure is propagated, and later closures are dropped.

    Returns:
        The number of steps that this process has ended.
    """
    global _steps
    with _lock:
        _steps += 1
        count = _steps
        closures = _closures[:]
        _closures.clear()
    if is_lazy():
        _record_step()
    for closure, arguments in closures:
        closure(*arguments)
    return count


def _record_step() -> None:
    """Counts the step as a graph that is either compiled or found in the cache. A step without operations counts as
    neither."""
    from hccl_torch_hpu import _C, metrics

    operations, is_new = _C.end_step()
    if operations > 0:
        metrics.count_step(is_new)


def add_step_closure(closure: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
    """Registers ``closure(*args)`` to run at the end of the step."""
    with _lock:
        _closures.append((closure, tuple(args)))


def step_count() -> int:
    """Returns the number of steps that this process has ended."""
    return _steps
