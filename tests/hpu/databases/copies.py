# SPDX-License-Identifier: Apache-2.0
"""Copies a sample's tensors from the device to the CPU, preserving strides, shared storages and
lazy bits."""
from __future__ import annotations

import torch
from torch.utils._pytree import tree_map


class Copier:
    """Copies tensors to the CPU, each storage once."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def _storage(self, tensor: torch.Tensor) -> torch.UntypedStorage:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = storage.cpu()
        return self._storages[storage._cdata]

    def copy(self, value: object) -> object:
        """Returns a CPU tensor or packed sequence for one on the device, the CPU for the device or its
        name, and any other value unchanged."""
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == "hpu" else value
        if isinstance(value, str) and value.split(":")[0] == "hpu":
            return "cpu"
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return value.cpu()
        if not isinstance(value, torch.Tensor) or value.device.type != "hpu":
            return value
        with torch.no_grad():
            result = torch.empty(0, dtype=value.dtype).set_(
                self._storage(value), value.storage_offset(), value.size(), value.stride())
            if value.is_conj():
                torch._C._set_conj(result, True)
            if value.is_neg():
                torch._C._set_neg(result, True)
        if isinstance(value, torch.nn.Parameter):
            return torch.nn.Parameter(result, requires_grad=value.requires_grad)
        return result.requires_grad_(value.requires_grad)

    def copy_all(self, tree: object) -> object:
        """Applies copy() to all values in nested lists, tuples and dictionaries."""
        return tree_map(self.copy, tree)


def detached(tree: object) -> object:
    """Returns a copy of the tree whose tensors are new leaves with the same values and
    requires_grad."""

    def fresh(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        with torch.no_grad():
            result = value.detach().clone(memory_format=torch.preserve_format)
        return result.requires_grad_(value.requires_grad)

    return tree_map(fresh, tree)
