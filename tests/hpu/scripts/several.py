# SPDX-License-Identifier: Apache-2.0
"""Runs programs one after another in one process, so that shared modules are imported only once.
Prints the number of hccl calls that each program made.

several.py PROGRAM ARGUMENT... + PROGRAM ARGUMENT...
"""
import os
import runpy
import sys
from pathlib import Path

import torch.distributed as dist


def _forget() -> None:
    """Resets the process group and Accelerate's state for the next program. Keeps the imported
    modules."""
    if dist.is_initialized():
        dist.destroy_process_group()
    if "accelerate" in sys.modules:
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state(reset_partial_state=True)


def _count_calls(program: str) -> None:
    if "hccl_torch" not in sys.modules:
        return
    hccl_torch = sys.modules["hccl_torch"]
    calls = sum(one["calls"] for one in hccl_torch.stats().values())
    # One write, so that lines do not mix.
    os.write(1, f"\n{Path(program).name}: hccl has made {calls} calls\n".encode())
    hccl_torch.reset_stats()


def main() -> None:
    words = sys.argv[1:]
    while words:
        end = words.index("+") if "+" in words else len(words)
        sys.argv, words = words[:end], words[end + 1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        _count_calls(sys.argv[0])
        _forget()


if __name__ == "__main__":
    main()
