# SPDX-License-Identifier: Apache-2.0
"""Memory of the device.

All names are those of ``torch.hpu``. This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs
or Intel."""
from __future__ import annotations

from hccl_torch_hpu.missing import forwarding

from habana_frameworks.torch import hpu

__getattr__ = forwarding(__name__, hpu)
