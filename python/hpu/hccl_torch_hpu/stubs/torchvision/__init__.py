# SPDX-License-Identifier: Apache-2.0
"""Replaces torchvision if it is not installed.

``import optimum.habana`` imports torchvision.transforms for one of its models, and torchvision's wheel on PyPI cannot
be loaded together with the CPU build of torch. hccl-hpu appends this folder to the path of programs only if Optimum is
installed and torchvision is not. The folder has no distribution information, so programs that check for torchvision
find that it is not installed.
"""
