# SPDX-License-Identifier: Apache-2.0
"""Checks one operation of PyTorch's database op_db: runs it on the device and on the CPU, and compares the results."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch._decomp.decompositions_for_jvp  # noqa: F401  otherwise each forked process imports it
from compare import Arguments, require, require_equal_values, require_same
from copies import Copier, detached
from outcomes import NotApplicable, outcomes_of
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

# The maximum number of an operation's samples that a check runs.
_SAMPLES = 8

OPERATIONS: dict[str, OpInfo] = {}
for _info in op_db:
    OPERATIONS[_info.name + (f".{_info.variant_test_name}" if _info.variant_test_name else "")] = _info

# Operations whose results are uninitialised memory.
_UNDEFINED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}


def _samples(info: OpInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[tuple[SampleInput, SampleInput]]:
    torch.manual_seed(1)
    for number, sample in enumerate(info.sample_inputs("hpu", dtype, requires_grad=requires_grad)):
        if number >= _SAMPLES:
            return
        yield sample, _on_host(sample)


def _on_host(sample: SampleInput) -> SampleInput:
    copier = Copier()
    return SampleInput(copier.copy_all(sample.input), args=copier.copy_all(tuple(sample.args)),
                       kwargs=copier.copy_all(dict(sample.kwargs)))


def _call(function: Callable, sample: SampleInput) -> object:
    torch.manual_seed(2)
    return function(sample.input, *sample.args, **sample.kwargs)


def _inputs(sample: SampleInput) -> object:
    return (sample.input, sample.args, sample.kwargs)


def _run_both(function: Callable, device: SampleInput, host: SampleInput) -> tuple[object, object] | None:
    """Runs the function on both samples. Returns both results, or None if both the CPU and the
    device reject the sample. If only one of them does, raises its exception."""
    try:
        want = _call(function, host)
    except Exception:
        try:
            _call(function, device)
        except Exception:
            return None
        raise
    return _call(function, device), want


def check_values(info: OpInfo, dtype: torch.dtype, change: Callable | None = None) -> None:
    """Compares the results, and the arguments after the call."""
    if dtype not in info.dtypes:
        raise NotApplicable
    for sample, host in _samples(info, dtype, False):
        if change is not None:
            sample = change(sample)
            host = _on_host(sample)
        arguments = Arguments(_inputs(sample), _inputs(host))
        results = _run_both(info.op, sample, host)
        if results is not None:
            require_same(*results, _inputs(sample), _inputs(host), "result", with_values=info.name not in _UNDEFINED)
        arguments.require_changed_alike()


def non_contiguous(sample: SampleInput) -> SampleInput:
    """Returns the sample with gaps between its elements."""
    return sample.noncontiguous()


def check_in_place(info: OpInfo, dtype: torch.dtype) -> None:
    """Compares the in-place variant, which writes to its first argument."""
    variant = info.inplace_variant
    if variant is None or dtype not in info.dtypes:
        raise NotApplicable
    for sample, host in _samples(info, dtype, False):
        if sample.broadcasts_input:
            continue
        sample = SampleInput(*detached((sample.input, sample.args, sample.kwargs))[:1], args=sample.args,
                             kwargs=sample.kwargs)
        host = _on_host(sample)
        arguments = Arguments(_inputs(sample), _inputs(host))
        results = _run_both(variant, sample, host)
        if results is not None:
            require_same(*results, _inputs(sample), _inputs(host), "result", with_history=False)
            arguments.require_changed_alike()


def _poisoned_like(result: object) -> object:
    def poison(one: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(one.size(), one.stride(), dtype=one.dtype, device=one.device).fill_(3)

    return tuple(poison(one) for one in result) if isinstance(result, (tuple, list)) else poison(result)


def check_out(info: OpInfo, dtype: torch.dtype) -> None:
    """Compares results written to ``out=`` arguments that have the right size or size 0."""
    if not info.supports_out or dtype not in info.dtypes or info.name in _UNDEFINED:
        raise NotApplicable
    for sample, host in _samples(info, dtype, False):
        results = _run_both(info.op, sample, host)
        if results is None or not all(isinstance(one, torch.Tensor) for one in tree_flatten(results[1])[0]):
            continue
        if isinstance(results[1], tuple) and any(isinstance(one, tuple) for one in results[1]):
            continue
        outs = [_poisoned_like(one) for one in results]
        if not _write_out(info, (sample, host), outs):
            continue
        require_same(*outs, (), (), "out", with_history=False)
        if not isinstance(results[1], torch.Tensor):
            continue
        empty = [torch.empty(0, dtype=one.dtype, device=one.device) for one in results]
        if _write_out(info, (sample, host), empty):
            require_same(*empty, (), (), "grown out", with_strides=False, with_history=False)


def _write_out(info: OpInfo, samples: tuple[SampleInput, SampleInput], outs: list) -> bool:
    """Writes to ``out=`` on the CPU and on the device. Returns False if the CPU refuses to."""
    for on_host, one, out in ((True, samples[1], outs[1]), (False, samples[0], outs[0])):
        torch.manual_seed(2)
        try:
            info.op(one.input, *one.args, **one.kwargs, out=out)
        except Exception:
            if on_host:
                return False
            raise
    return True


def _differentiable(result: object) -> list[torch.Tensor]:
    return [one for one in tree_flatten(result)[0]
            if isinstance(one, torch.Tensor) and one.requires_grad and (one.is_floating_point() or one.is_complex())]


def _leaves(sample: SampleInput) -> list[torch.Tensor]:
    return [one for one in tree_flatten(_inputs(sample))[0] if isinstance(one, torch.Tensor) and one.requires_grad]


def _gradients(info: OpInfo, sample: SampleInput, create_graph: bool) -> list[torch.Tensor | None] | None:
    result = _call(info.op, sample)
    if sample.output_process_fn_grad is not None:
        result = sample.output_process_fn_grad(result)
    outputs = _differentiable(result)
    leaves = _leaves(sample)
    if not outputs or not leaves:
        return None
    return list(torch.autograd.grad(outputs, leaves, [torch.ones_like(one) for one in outputs], allow_unused=True,
                                    create_graph=create_graph))


def _compare_gradients(device: list | None, host: list | None, what: str) -> bool:
    require((device is None) == (host is None), f"{what}: only one of device and CPU has any")
    if device is None:
        return False
    for number, (one, other) in enumerate(zip(device, host)):
        require((one is None) == (other is None), f"{what}[{number}]: only one of device and CPU has it")
        if one is not None and other.layout == torch.strided:
            require(one.device.type == "hpu", f"{what}[{number}] is on {one.device}")
            require_equal_values(one, other, f"{what}[{number}]")
    return True


def check_backward(info: OpInfo, dtype: torch.dtype, twice: bool = False) -> None:
    """Compares gradients and, if ``twice``, gradients of gradients."""
    if not info.supports_autograd or dtype not in info.supported_backward_dtypes("cpu") or (twice and not info.supports_gradgrad):
        raise NotApplicable
    for sample, host in _samples(info, dtype, True):
        host.output_process_fn_grad = sample.output_process_fn_grad
        try:
            want = _gradients(info, host, twice)
        except Exception:
            continue  # the CPU has no gradients for this sample
        got = _gradients(info, sample, twice)
        if not _compare_gradients(got, want, "gradient") or not twice:
            continue
        try:
            second = _gradients_of(want, host)
        except Exception:
            continue
        _compare_gradients(_gradients_of(got, sample), second, "second gradient")


def _gradients_of(gradients: list, sample: SampleInput) -> list | None:
    outputs = [one for one in gradients if one is not None and one.requires_grad]
    if not outputs:
        return None
    return list(torch.autograd.grad(outputs, _leaves(sample), [torch.ones_like(one) for one in outputs],
                                    allow_unused=True))


def check_forward_gradients(info: OpInfo, dtype: torch.dtype) -> None:
    """Compares the tangents of forward-mode differentiation."""
    import torch.autograd.forward_ad as forward

    if not info.supports_forward_ad or dtype not in info.supported_backward_dtypes("cpu"):
        raise NotApplicable
    for sample, host in _samples(info, dtype, True):
        tangents = []
        refused = False
        for one in (host, sample):
            with forward.dual_level():
                def dual(value: object) -> object:
                    if isinstance(value, torch.Tensor) and value.requires_grad:
                        return forward.make_dual(value.detach(), torch.ones_like(value.detach()))
                    return value

                lifted = SampleInput(tree_map(dual, one.input), args=tree_map(dual, tuple(one.args)),
                                     kwargs=tree_map(dual, dict(one.kwargs)))
                try:
                    result = _call(info.op, lifted)
                except Exception:
                    if one is host:
                        refused = True
                        break
                    raise
                tangents.append([forward.unpack_dual(each).tangent for each in tree_flatten(result)[0]
                                 if isinstance(each, torch.Tensor)])
        if refused:
            continue
        want, got = tangents
        _compare_gradients(got, want, "tangent")


def check_inference(info: OpInfo, dtype: torch.dtype) -> None:
    """Compares results in inference mode."""
    if dtype not in info.dtypes:
        raise NotApplicable
    with torch.inference_mode():
        for sample, host in _samples(info, dtype, False):
            results = _run_both(info.op, sample, host)
            if results is not None:
                require_same(*results, _inputs(sample), _inputs(host), "result",
                             with_values=info.name not in _UNDEFINED)


CHECKS: dict[str, Callable[[OpInfo], None]] = {
    "float32": lambda info: check_values(info, torch.float32),
    "float64": lambda info: check_values(info, torch.float64),
    "bfloat16": lambda info: check_values(info, torch.bfloat16),
    "float16": lambda info: check_values(info, torch.float16),
    "int64": lambda info: check_values(info, torch.int64),
    "bool": lambda info: check_values(info, torch.bool),
    "complex64": lambda info: check_values(info, torch.complex64),
    "gaps": lambda info: check_values(info, torch.float32, non_contiguous),
    "inference": lambda info: check_inference(info, torch.float32),
    "in place": lambda info: check_in_place(info, torch.float32),
    "out": lambda info: check_out(info, torch.float32),
    "backward": lambda info: check_backward(info, torch.float32),
    "double backward": lambda info: check_backward(info, torch.float32, twice=True),
    "forward AD": lambda info: check_forward_gradients(info, torch.float32),
}


def names() -> list[str]:
    return list(OPERATIONS)


def run(name: str) -> dict[str, str]:
    """Returns the outcomes of an operation's checks."""
    return outcomes_of({check: partial(function, OPERATIONS[name]) for check, function in CHECKS.items()})
