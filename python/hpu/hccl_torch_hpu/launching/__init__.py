# SPDX-License-Identifier: Apache-2.0
"""What ``hccl-hpu`` is made of: checks, variables, a private folder, and processes."""
