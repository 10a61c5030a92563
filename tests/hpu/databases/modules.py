# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's database of modules on the device and on the CPU. Compares the results, and the
gradients of inputs and parameters."""
from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

import torch
from compare import require, require_equal_values
from copies import Copier
from outcomes import outcomes_of
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils._pytree import tree_flatten, tree_map

MODULES: dict[str, ModuleInfo] = {info.name: info for info in module_db}


def names() -> list[str]:
    return list(MODULES)


def _cases(info: ModuleInfo, training: bool) -> Iterator[tuple]:
    """Yields each module and its arguments on the device and on the CPU."""
    torch.manual_seed(1)
    inputs = info.module_inputs_func(info, device="hpu", dtype=torch.float32, requires_grad=True, training=training)
    for one in inputs:
        if one.forward_input is None:
            continue
        copier = Copier()
        make, call = one.constructor_input, one.forward_input
        host = info.module_cls(*_on_host(make.args, copier), **_on_host(make.kwargs, copier))
        host.to(torch.float32).train(training)
        device = copy.deepcopy(host).to("hpu")
        arguments = (copier.copy_all(tuple(call.args)), copier.copy_all(dict(call.kwargs)))
        yield device, (call.args, call.kwargs), host, arguments


def _on_host(tree: object, copier: Copier) -> object:
    """Returns a copy with all tensors and modules on the CPU."""
    return tree_map(lambda one: copy.deepcopy(one).cpu() if isinstance(one, torch.nn.Module) else copier.copy(one), tree)


def _tensors(tree: object) -> list[torch.Tensor]:
    return [one for one in tree_flatten(tree)[0] if isinstance(one, torch.Tensor)]


def _run(module: torch.nn.Module, arguments: tuple, backward: bool) -> tuple[list, list]:
    """Returns the results, and the gradients of arguments and parameters. The gradient of a tensor
    that is not a leaf is None."""
    args, kwargs = arguments
    torch.manual_seed(2)
    with sdpa_kernel(SDPBackend.MATH):
        results = _tensors(module(*args, **kwargs))
    if not backward:
        return results, []
    outputs = [one for one in results if one.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])
    leaves = [*_tensors(arguments), *module.parameters()]
    return results, [one.grad if one.is_leaf else None for one in leaves]


def check(info: ModuleInfo, training: bool, backward: bool) -> None:
    for device, device_arguments, host, host_arguments in _cases(info, training):
        want, want_gradients = _run(host, host_arguments, backward)
        got, gradients = _run(device, device_arguments, backward)
        require(len(got) == len(want), "the number of results differs")
        for number, (one, other) in enumerate(zip(got, want)):
            require(one.device.type == "hpu", f"result[{number}] is on {one.device}")
            require_equal_values(one, other, f"result[{number}]")
        inputs = len(_tensors(device_arguments))  # some tensors are leaves only on the CPU
        for number, (one, other) in enumerate(zip(gradients, want_gradients)):
            require(number < inputs or (one is None) == (other is None), f"gradient[{number}]: only one of device and CPU has it")
            if one is not None and other is not None:
                require_equal_values(one.to_dense() if one.is_sparse else one, other, f"gradient[{number}]")


def run(name: str) -> dict[str, str]:
    """Returns the outcomes of a module's checks."""
    info = MODULES[name]
    return outcomes_of({f"{what} in {mode}": partial(check, info, mode == "training", what == "backward")
                        for mode in ("training", "evaluation") for what in ("forward", "backward")})
