# SPDX-License-Identifier: Apache-2.0
"""Contains no transforms: using any name raises an error that says which package to install."""


def __getattr__(name: str):
    raise AttributeError(f"torchvision.transforms.{name} needs torchvision, but only hccl-torch-hpu's stub of it is "
                         "installed; install torchvision as built for torch's CPU wheel")
