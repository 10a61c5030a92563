# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of distributed backends, from its wheel, for the backend that BACKEND names.

The suite lists the backends in PyTorch's tree and skips tests for all others. This module makes the
suite treat BACKEND as gloo, so that the suite runs every test that it runs for gloo.
"""
import os

import torch

BACKEND = os.environ["BACKEND"]
DEVICE = os.environ.get("C10D_DEVICE", "cpu")  # device of the tests' tensors


class LikeGloo(str):
    """A backend name that also compares equal to "gloo"."""

    def __eq__(self, other) -> bool:
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


class Environment(dict):
    """An environment for importing the suite, in which BACKEND is a LikeGloo name."""

    def __getitem__(self, name):
        return LikeGloo(BACKEND) if name == "BACKEND" else super().__getitem__(name)


from torch.testing._internal import common_distributed  # noqa: E402

common_distributed.DistTestCases.backend_feature["plugin"].add(BACKEND)
common_distributed.TEST_HPU = False  # the suite's accelerator tests name CUDA explicitly
real_environment = os.environ
os.environ = Environment(os.environ)
try:
    from torch.testing._internal.distributed import distributed_test
finally:
    os.environ = real_environment

# Tests that cannot pass with a backend outside PyTorch's tree, and tests that cannot pass on the emulated device.
NO_MONITORED_BARRIER = "torch.distributed.monitored_barrier refuses every backend but gloo"
IMPOSSIBLE = {"test_ddp_logging_data_cpu": "PyTorch names every backend outside its tree \"custom\" in DDP's logging data",
              "test_monitored_barrier_gloo": NO_MONITORED_BARRIER,
              "test_monitored_barrier_gloo_rank_0_timeout": NO_MONITORED_BARRIER,
              "test_monitored_barrier_gloo_subgroup": NO_MONITORED_BARRIER}

NO_SPARSE = {"test_sparse_all_reduce_sum": "the emulated device has no sparse tensors"}


class TestCollectives(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Runs the suite's tests, each with WORLD_SIZE processes."""

    def setUp(self) -> None:
        if BACKEND != "gloo" and self._testMethodName in IMPOSSIBLE:
            self.skipTest(IMPOSSIBLE[self._testMethodName])
        if DEVICE == "hpu" and self._testMethodName in NO_SPARSE:
            self.skipTest(NO_SPARSE[self._testMethodName])
        if DEVICE != "cpu":
            torch.set_default_device(DEVICE)  # inherited by the forked processes
            self.addCleanup(torch.set_default_device, None)
        super().setUp()
        # Forked processes do not import PyTorch again.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)
