# SPDX-License-Identifier: Apache-2.0
"""Runs the functions of training.py on 2 ranks, and data_parallel on 4 as well."""
from pathlib import Path

from launcher import run_ranks

FUNCTIONS = ["data_parallel", "small_buckets", "unused_parameters", "static_graph", "compressed", "custom_comm_hook",
             "accumulated", "uneven_inputs", "zero_redundancy", "fully_sharded", "functional_collectives",
             "distributed_tensors", "pipeline"]


def test_two_ranks() -> None:
    run_ranks(2, "training:" + ",".join(FUNCTIONS), seconds=300)


def test_gloo_shards_identically() -> None:
    run_ranks(2, "training:fully_sharded", backend="gloo", GLOO_SOCKET_IFNAME="lo")


def test_four_ranks() -> None:
    run_ranks(4, "training:data_parallel")


def test_checkpoint(tmp_path: Path) -> None:
    run_ranks(2, "training:checkpoint", str(tmp_path))


def test_with_the_allocator() -> None:
    run_ranks(2, "training:data_parallel", HCCL_TORCH_ALLOCATOR="1")


def test_detail_mode() -> None:
    run_ranks(2, "training:detail_reports_a_mismatch", TORCH_DISTRIBUTED_DEBUG="DETAIL")
