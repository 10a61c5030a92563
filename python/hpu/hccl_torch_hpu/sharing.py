# SPDX-License-Identifier: Apache-2.0
"""HPU tensors cannot be sent to other processes, because each process has its own device."""
from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch


def refuse_to_send() -> None:
    """Makes ``torch.multiprocessing`` refuse to send HPU tensors. By default, it would share them as if they were CPU
    tensors."""
    reductions = torch.multiprocessing.reductions
    wrapped = {function: _refusing(function) for function in (reductions.reduce_tensor, reductions.reduce_storage)}
    for kind, function in list(ForkingPickler._extra_reducers.items()):
        if function in wrapped:
            ForkingPickler.register(kind, wrapped[function])


def _refusing(reduce: Callable) -> Callable:
    @functools.wraps(reduce)
    def reduce_unless_on_device(value: Any) -> Any:
        if value.device.type == "hpu":
            raise RuntimeError("hccl_torch_hpu: a tensor on hpu:0 cannot be sent to another process, which has a device of "
                               "its own; send tensor.cpu(), and move it to the device in the other process")
        return reduce(value)

    return reduce_unless_on_device
