# SPDX-License-Identifier: Apache-2.0
"""Tests that ``hccl-hpu run``, and other launchers inside ``hccl-hpu shell``, start ranks with
emulated devices, and that hccl moves the devices' data without staging."""
import shutil
from pathlib import Path

import pytest

from emulation import hccl_hpu
from launcher import free_port

PROGRAM = """
import os
import habana_frameworks.torch.core as htcore
from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu
import hccl_torch, torch, torch.distributed as dist

world, rank, local = initialize_distributed_hpu()
dist.init_process_group("hccl")
assert (dist.get_world_size(), dist.get_rank()) == (world, rank)
one = torch.full((1000,), float(rank + 1)).to("hpu")
dist.all_reduce(one)
htcore.mark_step()
assert one.device.type == "hpu" and one.cpu().tolist() == [world * (world + 1) / 2] * 1000
assert "emulated" in torch.hpu.get_device_name()
assert torch.hpu.device_count() == len(os.environ["HABANA_VISIBLE_MODULES"].split(","))
assert hccl_torch.stats()["all_reduce"] == {"calls": 1, "bytes": 4000, "zero_copy": 1, "staged": 0}
os.write(1, f"rank {rank} of {world} is done\\n".encode())
dist.destroy_process_group()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def require_all(output: str, ranks: int) -> None:
    for rank in range(ranks):
        assert f"rank {rank} of {ranks} is done" in output, output


def test_run_on_simulated_nodes(program: str, tmp_path: Path) -> None:
    output = hccl_hpu("run", "--nodes", "2x2", program, folder=tmp_path, HCCL_EXPLAIN="1")
    require_all(output, 4)
    assert "tcp" in output, output


def test_torchrun(program: str, tmp_path: Path) -> None:
    require_all(hccl_hpu("shell", "torchrun", "--standalone", "--nproc-per-node", "2", program, folder=tmp_path), 2)


def test_mpirun(program: str, tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    output = hccl_hpu("shell", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "python", program,
                      folder=tmp_path, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), OMPI_MCA_btl_tcp_if_include="lo",
                      OMPI_MCA_oob_tcp_if_include="lo", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    require_all(output, 2)


def test_nested_launcher(program: str, tmp_path: Path) -> None:
    """A nested launcher must start all ranks, and must not add folders to PYTHONPATH twice."""
    output = hccl_hpu("shell", "hccl-hpu", "run", "-n", "2", program, folder=tmp_path)
    require_all(output, 2)
    path = hccl_hpu("shell", "hccl-hpu", "shell", "sh", "-c", "echo $PYTHONPATH", folder=tmp_path).strip().split(":")
    assert len(path) == len(set(path)) and path[0].endswith("shim"), path
