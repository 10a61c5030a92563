# SPDX-License-Identifier: Apache-2.0
"""Compares the effects of an operation on the device with those on the CPU."""
from __future__ import annotations

import torch
from torch.utils._pytree import tree_flatten

# Relative and absolute tolerances by type. Most results are bit-identical.
_TOLERANCES = {torch.bfloat16: (1.6e-2, 1e-2), torch.float16: (1.6e-2, 1e-2)}


class Difference(AssertionError):
    """Raised if the device's result differs from the CPU's."""


def require(condition: bool, text: str) -> None:
    if not condition:
        raise Difference(text)


def require_equal_values(device: torch.Tensor, host: torch.Tensor, what: str) -> None:
    """Raises Difference unless the elements agree, exactly or within the type's tolerance."""
    got, want = device.detach().cpu().resolve_conj().resolve_neg(), host.detach().resolve_conj().resolve_neg()
    if got.dtype == torch.complex32:
        got, want = got.to(torch.complex64), want.to(torch.complex64)
    if torch.equal(got, want):
        return
    if not (got.is_floating_point() or got.is_complex()):
        raise Difference(f"{what}: values differ")
    if got.element_size() == 1:
        got, want = got.float(), want.float()
    rtol, atol = _TOLERANCES.get(got.dtype, (1e-3, 2e-4))
    require(torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True), f"{what}: values differ")


def _storages(tensors: list) -> list[int]:
    return [one.untyped_storage()._cdata if isinstance(one, torch.Tensor) else 0 for one in tensors]


def _shares_with(tensor: torch.Tensor, storages: list[int]) -> int:
    own = tensor.untyped_storage()._cdata
    return storages.index(own) if own in storages else -1


def require_same(device: object, host: object, device_inputs: object, host_inputs: object, what: str,
                 with_strides: bool = True, with_values: bool = True, with_history: bool = True) -> None:
    """Raises Difference unless two results agree in everything that a program can observe.

    The results are trees of tensors. Compares types, shapes, strides, values, lazy bits, versions,
    whether a result requires a gradient or is a view, and which input's storage it uses. Does not
    compare strides and storages without ``with_strides``, values without ``with_values``, or views
    and versions without ``with_history``.
    """
    got, got_tree = tree_flatten(device)
    want, want_tree = tree_flatten(host)
    require(len(got) == len(want), f"{what}: {got_tree} is not {want_tree}")
    device_storages, host_storages = _storages(tree_flatten(device_inputs)[0]), _storages(tree_flatten(host_inputs)[0])
    for number, (one, other) in enumerate(zip(got, want)):
        name = f"{what}[{number}]"
        if not isinstance(other, torch.Tensor):
            same = one == other or (one != one and other != other) or isinstance(one, torch.device)
            require(type(one) is type(other) and bool(same), f"{name}: {one} is not {other}")
            continue
        require(isinstance(one, torch.Tensor), f"{name}: {type(one)} is not a tensor")
        require(one.layout == other.layout and one.dtype == other.dtype and one.shape == other.shape,
                f"{name}: {one.dtype} {tuple(one.shape)} is not {other.dtype} {tuple(other.shape)}")
        if with_strides:
            require(one.stride() == other.stride() and one.storage_offset() == other.storage_offset(),
                    f"{name}: strides {one.stride()} are not {other.stride()}")
        shared = _shares_with(other, host_storages)
        require(not with_strides or _shares_with(one, device_storages) == shared, f"{name}: storage")
        require(one.is_conj() == other.is_conj() and one.is_neg() == other.is_neg(), f"{name}: lazy bits")
        if with_history:
            require(one._is_view() == other._is_view() or any(one is each for each in tree_flatten(device_inputs)[0]),
                    f"{name}: is a view: {one._is_view()}")
        if with_history and shared < 0 and not one.is_inference():
            require(one._version == other._version, f"{name}: version {one._version} is not {other._version}")
        require(one.requires_grad == other.requires_grad, f"{name}: requires_grad")
        if with_values:
            require_equal_values(one, other, name)


class Arguments:
    """The arguments of a call on the device and on the CPU. Compares the changes that the call
    makes to them."""

    def __init__(self, device: object, host: object):
        self._device, self._host = device, host
        self._before = [self._versions(tree) for tree in (device, host)]

    @staticmethod
    def _versions(tree: object) -> list[int]:
        return [one._version for one in tree_flatten(tree)[0] if isinstance(one, torch.Tensor) and not one.is_inference()]

    def require_changed_alike(self) -> None:
        """Raises Difference unless values and shapes agree, and the call wrote to the arguments
        equally often on both devices."""
        device, host = ([one for one in tree_flatten(tree)[0] if isinstance(one, torch.Tensor)]
                        for tree in (self._device, self._host))
        require_same(device, host, (), (), "argument", with_history=False)
        device, host = ([after - before for after, before in zip(self._versions(tree), versions)]
                        for tree, versions in zip((self._device, self._host), self._before))
        require(device == host, f"arguments were written to {device} times, not {host}")
