# SPDX-License-Identifier: Apache-2.0
"""Tests PyTorch's ways of sharding a model on two emulated devices, compared with one process on
the CPU."""
from pathlib import Path

from emulation import SCRIPTS, hccl_hpu

CASES = ("fsdp1", "fsdp2", "dtensor", "dcp", "checkpointing", "compiled")


def test_two_devices_match_one_process(tmp_path: Path) -> None:
    output = hccl_hpu("run", "-n", "2", str(SCRIPTS / "shard.py"), str(tmp_path), *CASES, folder=tmp_path)
    for case in CASES:
        assert output.count(f"{case} is right") == 2, output


def test_collectives_precede_readers_of_their_results(tmp_path: Path) -> None:
    """Every read must see the result of the collective before it. After a rank is killed, the other
    rank's error must name that rank and the call."""
    output = hccl_hpu("run", "-n", "2", str(SCRIPTS / "order.py"), folder=tmp_path, code=None)
    assert output.count("in order") == 2, output
    assert "all_reduce" in output and "rank 1" in output and "not reached" not in output, output
