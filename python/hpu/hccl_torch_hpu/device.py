# SPDX-License-Identifier: Apache-2.0
"""The module ``torch.hpu`` of the emulated device.

A process has one device, ``hpu:0``, as programs for Gaudi expect. Every visible device number refers to this device:
``current_device()`` stays 0, and ``set_device()`` changes nothing. Operations have ended when their calls return. Only
collectives and messages may still be running; later operations on their tensors wait for them.
"""
from __future__ import annotations

import os
from typing import Any

import torch

from hccl_torch_hpu import _C
from hccl_torch_hpu import amp, random  # noqa: F401
from hccl_torch_hpu.memory import (  # noqa: F401
    empty_cache, max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated, memory_reserved, memory_stats,
    memory_summary, reset_accumulated_memory_stats, reset_max_memory_allocated, reset_peak_memory_stats)
from hccl_torch_hpu.random import (  # noqa: F401
    get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed, seed_all, set_rng_state,
    set_rng_state_all)
from hccl_torch_hpu.streams import (  # noqa: F401
    Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream, synchronize)

_emulation = True
_initialized = True  # torch.utils.checkpoint saves a device's random state only if its module has this attribute
_KINDS = ("GAUDI", "GAUDI2", "GAUDI3")


def _kind() -> str:
    kind = os.environ.get("HCCL_DEVICE_TYPE", "gaudi2").upper()
    return kind if kind in _KINDS else "GAUDI2"


def is_available() -> bool:
    """Returns True, because the emulated device exists if this module has been loaded."""
    return True


def is_initialized() -> bool:
    """Returns True, because the device needs no initialisation."""
    return True


def init() -> None:
    """Does nothing, because the device needs no initialisation."""


_lazy_init = init


def _is_in_bad_fork() -> bool:
    return _C.is_in_forked_process()


def device_count() -> int:
    """Returns the number of visible devices: the number of modules in ``HABANA_VISIBLE_MODULES``, else the value of
    ``HCCL_DEVICE_COUNT``, else 8."""
    return _C.device_count()


def current_device() -> int:
    """Returns 0, the number of this process's device."""
    return 0


def _index_of(device: Any) -> int:
    if device is None:
        return 0
    if isinstance(device, int):
        index = device
    else:
        device = torch.device(device)
        if device.type != "hpu":
            raise ValueError(f"Expected an hpu device, but got: {device}")
        index = device.index or 0
    if not 0 <= index < device_count():
        raise RuntimeError(f"hpu:{index} does not exist: this machine has {device_count()} visible emulated devices; "
                           "list more modules in HABANA_VISIBLE_MODULES")
    return index


def set_device(device: Any) -> None:
    """Checks that the device is visible. Does not switch devices: a process has only one, hpu:0.

    Raises:
        RuntimeError: there is no such device.
        ValueError: the device is not an HPU.
    """
    _index_of(device)


class device:  # noqa: N801  named as in torch.cuda
    """A context that selects a device. It has no effect, because a process has only one device."""

    def __init__(self, device: Any):
        self.idx = _index_of(device)
        self.prev_idx = 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> bool:
        return False


class device_of(device):  # noqa: N801
    """A context that selects a tensor's device. Like ``device``, it has no effect."""

    def __init__(self, tensor: torch.Tensor):
        super().__init__(tensor.device if tensor.is_hpu else None)


def get_device_name(device: Any = None) -> str:
    """Returns the name of a device, such as "GAUDI2 (emulated)". ``HCCL_DEVICE_TYPE`` determines the kind."""
    _index_of(device)
    return f"{_kind()} (emulated)"


def get_device_capability(device: Any = None) -> str:
    """Returns the Gaudi software release that the emulation imitates, such as "1.24.0"."""
    from hccl_torch_hpu.vendor import EMULATED_RELEASE

    _index_of(device)
    return EMULATED_RELEASE


class _Properties:
    """The properties of a device: ``name``, ``total_memory`` in bytes, ``major``, ``minor``, and
    ``multi_processor_count``, which is the number of the machine's processors."""

    def __init__(self, name: str, total_memory: int):
        self.name = name
        self.total_memory = total_memory
        self.major, self.minor = 1, 0
        self.multi_processor_count = os.cpu_count() or 1

    def __repr__(self) -> str:
        return f"_HpuDeviceProperties(name='{self.name}', total_memory={self.total_memory >> 20}MB)"


def get_device_properties(device: Any = None) -> _Properties:
    """Returns the properties of a device."""
    return _Properties(get_device_name(device), mem_get_info(device)[1])


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Returns whether the two arguments are different devices of this machine."""
    return _index_of(device) != _index_of(peer_device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns True."""
    return True


def ipc_collect() -> None:
    """Does nothing, because processes do not share memory through handles."""


def utilization(device: Any = None) -> int:
    """Returns 0, because the emulation does not measure utilisation."""
    _index_of(device)
    return 0


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the types to which autocasting may convert."""
    return [torch.bfloat16, torch.float16]


def is_autocast_hpu_enabled() -> bool:
    """Returns whether operations on the device are autocast."""
    return torch.is_autocast_enabled("hpu")


def set_autocast_hpu_enabled(enabled: bool) -> None:
    """Enables or disables autocasting for the device."""
    torch.set_autocast_enabled("hpu", enabled)


def get_autocast_hpu_dtype() -> torch.dtype:
    """Returns the type to which autocasting converts."""
    return torch.get_autocast_dtype("hpu")


def set_autocast_hpu_dtype(dtype: torch.dtype) -> None:
    """Sets the type to which autocasting converts."""
    torch.set_autocast_dtype("hpu", dtype)


def _extend_tensors() -> None:
    """Adds the method ``hpu()`` to tensors and modules."""

    def to_hpu(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
        """Returns this tensor on the emulated device, or the tensor itself if it is already there."""
        return self.to(torch.device("hpu", _index_of(device)), non_blocking=non_blocking, memory_format=memory_format)

    def module_to_hpu(self, device=None):
        """Moves all parameters and buffers to the emulated device. Returns the module."""
        return self._apply(lambda tensor: tensor.to(torch.device("hpu", _index_of(device))))

    torch.Tensor.hpu = to_hpu
    torch.nn.Module.hpu = module_to_hpu


def __getattr__(name: str) -> Any:
    if name in ("HPUGraph", "graph", "graph_pool_handle", "make_graphed_callables", "wrap_in_hpu_graph", "ModuleCacher",
                "disable_dynamic_shape", "enable_dynamic_shape", "graphs"):
        from hccl_torch_hpu import graphs

        return graphs if name == "graphs" else getattr(graphs, name)
    raise AttributeError(f"torch.hpu has no {name!r} in this emulation; see docs/explanation/from-laptop-to-gaudi.md")
