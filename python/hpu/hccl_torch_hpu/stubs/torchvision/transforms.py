# SPDX-License-Identifier: Apache-2.0
"""Contains no transforms: using any name raises an error that says which package to install."""


def __getattr__(name: str):
    raise AttributeError(f"torchvision.transforms.{name} needs torchvision, but only the stub in hccl-torch-hpu is "
                         "available; install the torchvision build for the CPU wheel of torch")
