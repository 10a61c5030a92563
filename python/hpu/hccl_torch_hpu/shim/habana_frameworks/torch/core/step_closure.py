# SPDX-License-Identifier: Apache-2.0
"""Ends steps, and registers functions that run at the end of a step.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from __future__ import annotations

from habana_frameworks.torch import hpu
from hccl_torch_hpu import lazy
from hccl_torch_hpu.lazy import add_step_closure
from hccl_torch_hpu.missing import missing

__all__ = ["add_step_closure", "iter_mark_step", "mark_step"]


def mark_step(device_str: str = "", sync: bool = False) -> None:
    """Ends a step. All operations have already been executed, except collectives for which the program has not waited.

    Args:
        device_str: the device; there is only one.
        sync: whether to block until these collectives have ended.
    """
    lazy.mark_step()
    if sync and hpu.is_available():
        hpu.synchronize()


def iter_mark_step(device_str: str = "") -> None:
    """Ends a step, like ``mark_step``."""
    lazy.mark_step()


def _mark_step_if_lazy(device_str: str = "") -> None:
    if lazy.is_lazy():
        lazy.mark_step()

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
