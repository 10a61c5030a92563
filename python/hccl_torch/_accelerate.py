# SPDX-License-Identifier: Apache-2.0
"""Support for Hugging Face Accelerate on the backend "hccl".

On CPUs, Accelerate supports only the backends gloo and mpi. If the program names another backend and explicitly tells
Accelerate to use CPUs, Accelerate raises ValueError. If the program only names the backend, Accelerate creates the
group but does not consider itself distributed, so each rank trains alone; hccl_torch then warns. With
HCCL_TORCH_PATCH_ACCELERATE=1, Accelerate accepts "hccl" in both cases.
"""
import importlib.abc
import inspect
import os
import sys
import warnings

_STATE = "accelerate.state"
# The variables in which launchers pass the number of processes. Accelerate reads them too.
_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


def warn_if_not_distributed(ranks: int) -> None:
    """Warns if Accelerate creates a group of several ranks but will not train them together."""
    if ranks < 2 or _STATE not in sys.modules:
        return
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != _STATE:
        frame = frame.f_back
    state = frame.f_locals.get("self") if frame is not None else None
    if getattr(getattr(state, "distributed_type", None), "name", None) == "NO":
        warnings.warn(f"hccl_torch: Accelerate creates a group of {ranks} ranks but does not consider itself "
                      "distributed, so each rank will train alone; set HCCL_TORCH_PATCH_ACCELERATE=1, or call "
                      "torch.distributed.init_process_group(\"hccl\") first and use Accelerator(cpu=True)", stacklevel=2)


def patch(state_module) -> None:
    """Makes ``accelerate.state.PartialState`` accept "hccl" as a backend for several processes on CPUs.

    Does not change Accelerate's decisions for machines with accelerators. If this version of Accelerate
    chooses the backend in another function, warns and changes nothing.
    """
    partial_state = getattr(state_module, "PartialState", None)
    original = getattr(partial_state, "_prepare_backend", None)
    kinds = getattr(state_module, "DistributedType", None)
    if original is None or kinds is None or "backend" not in inspect.signature(original).parameters:
        warnings.warn("hccl_torch: HCCL_TORCH_PATCH_ACCELERATE=1 has no effect on this version of Accelerate; call "
                      "torch.distributed.init_process_group(\"hccl\") before you use Accelerate", stacklevel=2)
        return
    signature = inspect.signature(original)

    def prepare_backend(self, *arguments, **named):
        chosen = original(self, *arguments, **named)
        asked = signature.bind(self, *arguments, **named).arguments.get("backend")
        kind = chosen[1]
        if asked == "hccl" and (kind == kinds.MULTI_CPU or kind == kinds.NO and _has_several_processes()):
            return "hccl", kinds.MULTI_CPU
        return chosen

    partial_state._prepare_backend = prepare_backend
    print("hccl_torch: Accelerate accepts the backend hccl on CPUs (HCCL_TORCH_PATCH_ACCELERATE=1)", file=sys.stderr)


def _has_several_processes() -> bool:
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return any(size.isdigit() and int(size) > 1 for size in sizes)


class _Patcher(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets the other finders find accelerate.state, and patches that module as soon as it is loaded."""

    def __init__(self) -> None:
        self._loader = None

    def find_spec(self, name, path, target=None):
        if name != _STATE:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None and spec.loader is not None:
                self._loader, spec.loader = spec.loader, self
                return spec
        return None

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path.remove(self)
        patch(module)


def patch_when_imported() -> None:
    """Patches Accelerate at once if it has been imported, else as soon as it is imported."""
    if _STATE in sys.modules:
        patch(sys.modules[_STATE])
    else:
        sys.meta_path.insert(0, _Patcher())
