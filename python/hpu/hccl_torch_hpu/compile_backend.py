# SPDX-License-Identifier: Apache-2.0
"""The backend "hpu_backend" of torch.compile: runs the traced graph operation by operation."""
from __future__ import annotations

import importlib.metadata
from typing import Any, Callable

from hccl_torch_hpu import metrics

NAME = "hpu_backend"
ENTRY_POINTS = "torch_dynamo_backends"


def hpu_backend(graph_module: Any, example_inputs: list[Any], **options: Any) -> Callable[..., Any]:
    """Returns the traced function unchanged. Ignores the options, which select passes of the Gaudi compiler."""
    metrics.count_capture()
    return graph_module.forward


def register() -> None:
    """Registers the backend with torch.compile. Does nothing if the backend has already been registered, by an earlier
    call or as an installed entry point."""
    from torch._dynamo.backends.registry import list_backends, register_backend

    if NAME not in list_backends(exclude_tags=None):
        register_backend(hpu_backend, name=NAME)


def is_entry_point() -> bool:
    """Returns True if an installed distribution declares the backend as an entry point, so that torch.compile finds
    it."""
    return any(one.name == NAME for one in importlib.metadata.entry_points(group=ENTRY_POINTS))
