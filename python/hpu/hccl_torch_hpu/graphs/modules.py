# SPDX-License-Identifier: Apache-2.0
"""Modules with HPU graphs. On a Gaudi, graphs reduce the load on the host. By default, the emulation runs modules
unchanged, including their gradients and Python code. With ``HCCL_TORCH_HPU_GRAPHS=1``, ``wrap_in_hpu_graph`` records
calls and replays them. A replay shows which values and branches the recording has frozen."""
from __future__ import annotations

import collections
import functools
import os
from typing import Any, Callable

import torch
from torch.utils._pytree import tree_leaves, tree_map

from hccl_torch_hpu.graphs.recording import HPUGraph, graph

# The arguments of a wrapped ``forward`` that only the wrapper uses.
_WRAPPER_ARGUMENTS = ("bypass_hpu_graphs", "warmup_mode", "cache_tensors_list")


class CachedParams:
    """A captured graph with the tensors that it reads and writes, for programs that keep their own cache."""

    def __init__(self, graph_inputs: Any, graph_outputs: Any, graph: Any, out_tinfo_list: Any = None,
                 asynchronous: bool = False) -> None:
        self.graph_inputs = graph_inputs
        self.graph_outputs = graph_outputs
        self.graph = graph
        self.out_tinfo_list = out_tinfo_list
        self.asynchronous = asynchronous


class _Identity:
    """A key for an object that has no hash. Two keys are equal if they stand for the same object. The key keeps the
    object alive, so that no later object gets the same id."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.obj is other.obj

    def __hash__(self) -> int:
        return id(self.obj)


def _key_of(obj: Any) -> Any:
    """Returns a key for inputs. Inputs that can use the same recording have equal keys: their structures and all values
    other than tensors are equal, their tensors have equal shapes, strides, types and devices, and autocasting is
    enabled for the same tensors."""
    if isinstance(obj, (dict, collections.UserDict)):
        return type(obj), _key_of(tuple(obj.items()))
    if isinstance(obj, (list, tuple)) and not isinstance(obj, torch.Size):
        return type(obj), tuple(_key_of(one) for one in obj)
    if isinstance(obj, torch.Tensor):
        strides = obj.stride() if obj.layout == torch.strided else None
        return obj.shape, strides, obj.dtype, obj.device, torch.is_autocast_enabled(obj.device.type)
    if isinstance(obj, (float, complex)):
        return type(obj), repr(obj)  # because 0.0 equals -0.0, and nan does not equal nan
    try:
        hash(obj)
    except TypeError:
        return _Identity(obj)
    return type(obj), obj


def input_hash(obj: Any) -> int:
    """Returns a hash for inputs. Inputs that can use the same recording have the same hash: their structures and all
    values other than tensors are equal, their tensors have equal shapes, strides, types and devices, and autocasting is
    enabled for the same tensors. As with any hash, different inputs can collide: Python gives -1 and -2 the same
    hash."""
    return hash(_key_of(obj))


def copy_to(dst: Any, src: Any) -> None:
    """Copies all tensors in ``src`` into the tensors at the same positions in ``dst``.

    Raises:
        ValueError: ``src`` and ``dst`` have different numbers of values.
    """
    old, new = tree_leaves(dst), tree_leaves(src)
    if len(old) != len(new):
        raise ValueError(f"copy_to: src has {len(new)} values and dst has {len(old)}; give both the same structure")
    with torch.no_grad():
        for place, value in zip(old, new):
            if isinstance(place, torch.Tensor):
                place.copy_(value, non_blocking=True)


def _does_record() -> bool:
    return os.environ.get("HCCL_TORCH_HPU_GRAPHS") == "1" and not torch.is_grad_enabled()


def wrap_in_hpu_graph_func(func: Callable[..., Any], asynchronous: bool = False, disable_tensor_cache: bool = False,
                           dry_run: bool = False, max_graphs: int | None = None, hash_with_views: bool = True,
                           **others: Any) -> Callable[..., Any]:
    """Wraps a function as ``wrap_in_hpu_graph`` wraps a module's ``forward``."""
    cache: dict[Any, CachedParams] = {}

    @functools.wraps(func)
    def forward(*args: Any, **kwargs: Any) -> Any:
        bypass, *_ = [kwargs.pop(name, False) for name in _WRAPPER_ARGUMENTS]
        if bypass or not _does_record():
            return func(*args, **kwargs)
        key = _key_of((args, kwargs))
        if key not in cache:
            if max_graphs is not None and len(cache) >= max_graphs:
                return func(*args, **kwargs)
            return _capture(func, args, kwargs, cache, key)
        known = cache[key]
        copy_to(known.graph_inputs, (args, kwargs))
        known.graph.replay(asynchronous)
        return tree_map(_own, known.graph_outputs)

    forward.hpu_graph_cache = cache
    return forward


def _own(value: Any) -> Any:
    """Returns a copy of a tensor, because each replay overwrites the tensors of its recording.
    Returns any other value unchanged."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _capture(func: Callable[..., Any], args: Any, kwargs: Any, cache: dict[Any, CachedParams], key: Any) -> Any:
    inputs = tree_map(_own, (args, kwargs))
    recording = HPUGraph()
    with graph(recording):
        outputs = func(*inputs[0], **inputs[1])
    cache[key] = CachedParams(inputs, outputs, recording)
    return tree_map(_own, outputs)


def wrap_in_hpu_graph(module: torch.nn.Module, asynchronous: bool = False, disable_tensor_cache: bool = False,
                      dry_run: bool = False, max_graphs: int | None = None, hash_with_views: bool = True,
                      **others: Any) -> torch.nn.Module:
    """Wraps the module's ``forward``, in place. Calls accept ``bypass_hpu_graphs``, ``warmup_mode`` and
    ``cache_tensors_list`` in addition to the module's own arguments.

    By default, the module runs unchanged, with or without gradients. With ``HCCL_TORCH_HPU_GRAPHS=1``, calls made while
    gradients are disabled are recorded, and calls with inputs that can use an existing recording (see ``input_hash``)
    replay it. At most ``max_graphs`` recordings are kept; the module runs unchanged for inputs that would need another.
    The other arguments are accepted and ignored; they matter only on a Gaudi.

    Returns:
        The module.
    """
    module.forward = wrap_in_hpu_graph_func(module.forward, asynchronous, disable_tensor_cache, dry_run, max_graphs,
                                            hash_with_views)
    module.clear_cache = module.forward.hpu_graph_cache.clear
    module.clear_inputs = lambda: None
    return module


class ModuleCacher(torch.nn.Module):
    """On a Gaudi, caches the training steps of a module as graphs. In the emulation, the module runs unchanged, so
    gradients, gradient accumulation and changing shapes work as without this class."""

    def __init__(self, max_graphs: int = 10) -> None:
        super().__init__()
        self.max_graphs = max_graphs
        self.iteration = 0

    def __call__(self, model: torch.nn.Module, use_lfu: bool = False, inplace: bool = True,
                 allow_unused_input: bool = False, asynchronous: bool = False, have_grad_accumulation: bool = False,
                 log_frequency: int = 100, verbose: bool = False, disable_tensor_cache: bool = False,
                 dry_run: bool = False) -> torch.nn.Module:
        """Returns the model, or a shallow copy with the same parameters if ``inplace`` is False. The other arguments
        are accepted and ignored; they matter only on a Gaudi."""
        if inplace:
            return model
        copy = model.__class__.__new__(model.__class__)
        copy.__dict__ = dict(model.__dict__)
        return copy

    def set_iteration_count(self, iter_num: int) -> None:
        """Sets the number of the training step."""
        self.iteration = iter_num

    def is_hpugraph_tracing(self) -> bool:
        """Returns False, because nothing is traced."""
        return False

    def log_stats(self) -> None:
        """Prints nothing, because there are no graphs."""


def make_graphed_callables(callables: Any, sample_args: Any, warmups: int = 0, allow_unused_input: bool = False,
                           asynchronous: bool = False, disable_tensor_cache: bool = False,
                           dry_run: bool = False) -> Any:
    """Returns the callables, which run unchanged, with gradients.

    Args:
        callables: a module or function, or a tuple of them.
        sample_args: a tuple of tensors, or a tuple of such tuples.

    Raises:
        TypeError: a sample argument is not a tensor.
        RuntimeError: a module has hooks, or a buffer that requires a gradient. Graphs allow neither.
    """
    is_single = not isinstance(callables, tuple)
    for one, arguments in zip((callables,) if is_single else callables, (sample_args,) if is_single else sample_args):
        if not all(isinstance(argument, torch.Tensor) for argument in arguments):
            raise TypeError("make_graphed_callables: sample_args must be tensors; pass other values with "
                            "functools.partial")
        if isinstance(one, torch.nn.Module):
            if one._backward_hooks or one._forward_hooks or one._forward_pre_hooks:
                raise RuntimeError("make_graphed_callables: the module has hooks; register the hooks after this call")
            if any(buffer.requires_grad for buffer in one.buffers()):
                raise RuntimeError("make_graphed_callables: a buffer requires a gradient; make it a parameter")
    return callables
