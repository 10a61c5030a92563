# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of distributed backends, which its wheel carries, for the backend that BACKEND names."""
import os

BACKEND = os.environ["BACKEND"]

from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

# What a backend can do is a table of the suite that only knows the backends in PyTorch's tree.
for feature in ("ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add(BACKEND)

# What no backend outside PyTorch's tree can pass.
IMPOSSIBLE = {"test_ddp_logging_data_cpu": "PyTorch names every backend outside its tree \"custom\" in DDP's logging data"}


class TestCollectives(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """The suite's tests. Each starts WORLD_SIZE processes."""

    def setUp(self) -> None:
        if BACKEND != "gloo" and self._testMethodName in IMPOSSIBLE:
            self.skipTest(IMPOSSIBLE[self._testMethodName])
        super().setUp()
        self._spawn_processes()
