# SPDX-License-Identifier: Apache-2.0
"""An emulated Gaudi device for PyTorch: the device type "hpu" on machines without a Gaudi.

Importing torch changes nothing unless the environment requests the emulation. With ``HCCL_EMU_HPU=1``, which
``hccl-hpu run`` sets, ``import torch`` also registers the device "hpu" and the module ``torch.hpu``, and makes the
emulation's package ``habana_frameworks`` importable. HPU tensors are in device memory that the library hccl emulates;
PyTorch's CPU kernels compute directly on that memory. This is not a product of Habana Labs or Intel.
"""
from __future__ import annotations

import atexit
import os
import sys
import warnings

__all__ = ["activate", "is_active", "operation_counts", "reset_operation_counts"]

_TORCH_SERIES = "2.13."


def is_active() -> bool:
    """Returns whether this process has the emulated device."""
    return "torch.hpu" in sys.modules and hasattr(sys.modules["torch.hpu"], "_emulation")


def operation_counts() -> dict[str, int]:
    """Returns the number of calls to each operation on HPU tensors since the start or the last
    ``reset_operation_counts()``.

    Views, copies and allocations, which the device performs itself, are not counted. All other operations run
    PyTorch's CPU kernels.
    """
    from hccl_torch_hpu import _C

    return _C.operation_counts()


def reset_operation_counts() -> None:
    """Resets the counts that ``operation_counts()`` returns."""
    from hccl_torch_hpu import _C

    _C.reset_operation_counts()


def activate() -> None:
    """Registers the emulated device with PyTorch in this process. A second call does nothing.

    Raises:
        VendorPackageError: the vendor's packages are installed.
        RuntimeError: this package was built for a different release series of PyTorch.
    """
    import torch

    if is_active():
        return
    if not torch.__version__.startswith(_TORCH_SERIES):
        raise RuntimeError(f"hccl_torch_hpu was built for PyTorch {_TORCH_SERIES}x, but this is {torch.__version__}; "
                           f"install torch=={_TORCH_SERIES}0")
    from hccl_torch_hpu import vendor

    vendor.refuse_beside_vendor()
    import hccl_torch._C  # noqa: F401  loads the backend's library, which the extension needs
    import hccl_torch_hpu._C  # noqa: F401
    from hccl_torch_hpu import device, lazy, sharing

    torch._register_device_module("hpu", device)
    sys.modules["torch.hpu"] = device
    atexit.register(hccl_torch_hpu._C.settle_autograd)
    hccl_torch_hpu._C.record_steps(lazy.is_lazy())
    device._extend_tensors()
    device.random._seed_with_torch()
    sharing.refuse_to_send()
    shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")
    if os.path.isdir(shim) and shim not in sys.path:
        sys.path.append(shim)


def _autoload() -> None:
    """Activates the device if the environment requests it. ``import torch`` calls this function, so the function raises
    no exception."""
    if os.environ.get("HCCL_EMU_HPU") != "1":
        return
    try:
        activate()
    except Exception as error:  # must not make import torch fail
        warnings.warn(f"hccl_torch_hpu: cannot activate the emulated device: {error}", stacklevel=2)
