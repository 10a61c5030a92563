# SPDX-License-Identifier: Apache-2.0
"""The exception for errors that ``hccl-hpu`` reports in one line before it exits."""


class LaunchError(Exception):
    """Describes in one line why a program cannot be started, and names one remedy."""
