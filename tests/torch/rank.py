# SPDX-License-Identifier: Apache-2.0
"""One rank: joins the default group, calls the function, leaves."""
import importlib
import sys

import torch.distributed as dist


def main() -> None:
    name, backend = sys.argv[1:]
    module, function = name.split(":")
    dist.init_process_group(backend)
    assert dist.get_backend() == backend
    getattr(importlib.import_module(module), function)()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
