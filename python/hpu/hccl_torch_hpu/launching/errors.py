# SPDX-License-Identifier: Apache-2.0
"""The error that ends ``hccl-hpu`` with one line."""


class LaunchError(Exception):
    """Describes in one line why a program cannot be started, and names one remedy."""
