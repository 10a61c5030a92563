# SPDX-License-Identifier: Apache-2.0
"""The device: ``torch.hpu``, with graphs, metrics and switches.

This module and ``torch.hpu`` offer the same functions and classes, because programs use either.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from __future__ import annotations

import sys
from typing import Any

import torch

from hccl_torch_hpu import graphs, metrics, switches
from hccl_torch_hpu.graphs import (CachedParams, HPUGraph, ModuleCacher, graph, graph_pool_handle,
                                   is_current_stream_capturing, make_graphed_callables, wrap_in_hpu_graph,
                                   wrap_in_hpu_graph_func)
from hccl_torch_hpu.metrics import metric_global, metric_localcontext, metrics_dump
from hccl_torch_hpu.missing import raise_missing

HABANA_VISIBLE_MODULES_VAR = "HABANA_VISIBLE_MODULES"
HLS_MODULE_ID_VAR = "HLS_MODULE_ID"

__all__ = ["CachedParams", "HPUGraph", "ModuleCacher", "graph", "graph_pool_handle", "graphs",
           "is_current_stream_capturing", "make_graphed_callables", "metric_global", "metric_localcontext", "metrics",
           "metrics_dump", "wrap_in_hpu_graph", "wrap_in_hpu_graph_func", *switches.__all__]

# Results in a process without an emulated device.
_WITHOUT_DEVICE = {"is_available": lambda: False, "is_initialized": lambda: False, "device_count": lambda: 0}

for _name in switches.__all__:
    globals()[_name] = getattr(switches, _name)

# Programs import these as modules of this package.
sys.modules[f"{__name__}.graphs"] = graphs
sys.modules[f"{__name__}.metrics"] = metrics
hpu = sys.modules[__name__]

if hasattr(torch, "hpu"):
    for _name in __all__:
        if not hasattr(torch.hpu, _name):
            setattr(torch.hpu, _name, globals()[_name])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    device = getattr(torch, "hpu", None)
    if device is None:
        if name in _WITHOUT_DEVICE:
            return _WITHOUT_DEVICE[name]
        raise_missing(__name__, name, "this process has no emulated device: start the program with hccl-hpu run, or "
                                      "with HCCL_EMU_HPU=1",
                      sys._getframe(1))
    if hasattr(device, name):
        return getattr(device, name)
    raise_missing(__name__, name, "see shim/README.md of hccl_torch_hpu, or run on a Gaudi", sys._getframe(1))
