# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own ways of spreading a model over devices, on two emulated ones, against one process on the CPU."""
from pathlib import Path

import pytest
from emulation import SCRIPTS, hccl_hpu


@pytest.mark.parametrize("case", ["fsdp1", "fsdp2", "dtensor", "dcp", "checkpointing", "compiled"])
def test_two_devices_compute_what_one_process_does(case: str, tmp_path: Path) -> None:
    output = hccl_hpu("run", "-n", "2", str(SCRIPTS / "shard.py"), case, str(tmp_path), folder=tmp_path)
    assert output.count(f"{case} is right") == 2, output


def test_collectives_come_before_what_reads_their_results(tmp_path: Path) -> None:
    output = hccl_hpu("run", "-n", "2", str(SCRIPTS / "order.py"), folder=tmp_path)
    assert output.count("in order") == 2, output


def test_a_killed_rank_is_named(tmp_path: Path) -> None:
    output = hccl_hpu("run", "-n", "2", str(SCRIPTS / "order.py"), "killed", folder=tmp_path, code=None)
    assert "all_reduce" in output and "rank 1" in output, output
    assert "in order" not in output, output
