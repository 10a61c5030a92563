# SPDX-License-Identifier: Apache-2.0
"""Replaces torchvision if it is not installed.

``import optimum.habana`` imports torchvision.transforms for one of its models, and torchvision's wheel on PyPI cannot
be loaded beside torch for CPUs. hccl-hpu puts this folder at the end of the path of programs, beside Optimum only, and
only if no torchvision is installed. It has no distribution information, so programs that check whether torchvision is
installed find that it is not.
"""
