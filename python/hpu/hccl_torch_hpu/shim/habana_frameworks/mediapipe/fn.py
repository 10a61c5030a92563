# SPDX-License-Identifier: Apache-2.0
"""Steps of media pipelines. Programs can name them but not create them.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from typing import Any

from hccl_torch_hpu.media import node


def __getattr__(name: str) -> Any:
    return node(__name__, name)
