# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's database of optimizers on the device and on the CPU, and compares the parameters
after a few steps."""
from __future__ import annotations

from functools import partial

import torch
from compare import require, require_equal_values
from outcomes import NotApplicable, outcomes_of
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

OPTIMIZERS: dict[str, OptimizerInfo] = {info.optim_cls.__name__: info for info in optim_db}
_STEPS = 4


def names() -> list[str]:
    return list(OPTIMIZERS)


def _train(info: OptimizerInfo, device: str, options: dict) -> list[torch.Tensor]:
    torch.manual_seed(3)
    shapes = (8, 6), (6,)
    values = [torch.randn(shape) for shape in shapes]
    gradients = [[torch.randn(shape) for shape in shapes] for _ in range(_STEPS)]
    if info.only_supports_sparse_grads:
        gradients = [[one.to_sparse() for one in step] for step in gradients]
    parameters = [torch.nn.Parameter(one.to(device)) for one in values]
    options = {name: one.to(device) if isinstance(one, torch.Tensor) and name != "lr" else one
               for name, one in options.items()}
    optimizer = info.optim_cls(parameters, **options)
    for step in gradients:
        for parameter, gradient in zip(parameters, step):
            parameter.grad = gradient.to(device)
        optimizer.step(lambda: torch.tensor(0.0)) if info.step_requires_closure else optimizer.step()
    return parameters


def check(info: OptimizerInfo, implementation: str) -> None:
    """Compares the configurations of the database that the CPU accepts, for one implementation:
    "default", "foreach" or "fused"."""
    if implementation != "default" and implementation not in info.supported_impls:
        raise NotApplicable
    if implementation == "fused" and "cpu" not in info.supports_fused_on:
        raise NotApplicable
    for case in info.optim_inputs_func("hpu"):
        options = dict(case.kwargs)
        if options.get("capturable"):
            continue  # only for CUDA graphs
        if implementation != "default":
            options[implementation] = True
        if implementation == "fused" and options.get("differentiable"):
            continue
        try:
            host = _train(info, "cpu", options)
        except Exception:
            continue  # the CPU refuses this configuration
        for number, (one, other) in enumerate(zip(_train(info, "hpu", options), host)):
            require(one.device.type == "hpu", f"parameter {number} is on {one.device}")
            require_equal_values(one, other, f"parameter {number} with {case.desc or 'defaults'}")


def run(name: str) -> dict[str, str]:
    """Returns the outcomes of an optimizer's checks."""
    info = OPTIMIZERS[name]
    return outcomes_of({one: partial(check, info, one) for one in ("default", "foreach", "fused")})
