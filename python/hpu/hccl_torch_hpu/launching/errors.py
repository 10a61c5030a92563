# SPDX-License-Identifier: Apache-2.0
"""The error that ends ``hccl-hpu`` with one line."""


class LaunchError(Exception):
    """Says in one line what keeps a program from being started, and what to do about it."""
