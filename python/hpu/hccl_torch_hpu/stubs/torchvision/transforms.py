# SPDX-License-Identifier: Apache-2.0
"""No transforms: a name that is used raises, and says what is needed for it."""


def __getattr__(name: str):
    raise AttributeError(f"torchvision.transforms.{name} needs torchvision, for which only hccl-torch-hpu's stub is here; "
                         "install torchvision as built for torch's CPU wheel")
