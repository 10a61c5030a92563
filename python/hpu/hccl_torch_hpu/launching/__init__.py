# SPDX-License-Identifier: Apache-2.0
"""The parts of ``hccl-hpu``: checks, variables, a private folder, and processes."""
