# SPDX-License-Identifier: Apache-2.0
"""Functions for lazy mode, and a timer.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter
from typing import Any

from hccl_torch_hpu.lazy import is_lazy
from hccl_torch_hpu.missing import missing

__all__ = ["Timer", "is_lazy", "lazy_only"]


def lazy_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that does nothing and returns None unless lazy mode is enabled."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) if is_lazy() else None

    return wrapped


class Timer:
    """A context that measures its duration in seconds."""

    def __enter__(self) -> Timer:
        self._start, self._end = perf_counter(), None
        return self

    def __exit__(self, *error: Any) -> None:
        self._end = perf_counter()

    def elapsed(self) -> float:
        """Returns the seconds from the start to now, or to the end of the context if that has ended."""
        return (self._end or perf_counter()) - self._start

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
