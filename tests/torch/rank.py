# SPDX-License-Identifier: Apache-2.0
"""The program of one rank: joins the default group, calls the functions and leaves."""
import datetime
import importlib
import os
import sys

import torch.distributed as dist


def main() -> None:
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # so that lines do not mix
    names, backend, *arguments = sys.argv[1:]
    module, functions = names.split(":")
    timeout = datetime.timedelta(seconds=float(os.environ.get("TEST_TIMEOUT", "300")))
    dist.init_process_group(backend, timeout=timeout)
    assert dist.get_backend() == backend
    for function in functions.split(","):
        if dist.get_rank() == 0:
            print(f"{module}.{function}", flush=True)
        getattr(importlib.import_module(module), function)(*arguments)
    dist.destroy_process_group()
    if backend == "gloo":
        # On a busy machine, a thread of PyTorch's Gloo backend may still release tensors while the interpreter exits,
        # which aborts the process.
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
