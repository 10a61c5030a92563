# SPDX-License-Identifier: Apache-2.0
"""Under each launcher, runs a program that only names the backend, and checks that the library runs
the program's collectives."""
import shutil
import sys
from pathlib import Path

import pytest

from launcher import free_port, run, run_program, torchrun

BASIC = """
import torch, torch.distributed as dist
dist.init_process_group(backend="hccl")
t = torch.full((1000,), float(dist.get_rank() + 1)); dist.all_reduce(t)
assert t[0].item() == sum(range(1, dist.get_world_size() + 1)) and dist.get_backend() == "hccl"
dist.destroy_process_group()
"""

UNDER_MPI = """
import hccl_torch, os
assert hccl_torch.initialize_distributed_hpu() == tuple(int(os.environ[name]) for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"))
assert os.environ["HLS_MODULE_ID"] == str(4 + int(os.environ["LOCAL_RANK"])), os.environ["HLS_MODULE_ID"]
""" + BASIC

COUNTED = """
import torch, torch.distributed as dist
import torch._C._distributed_c10d as c10d
made = []
class Watched(c10d.ProcessGroupGloo):
    def __init__(self, *arguments):
        made.append(arguments)
        super().__init__(*arguments)
dist.distributed_c10d.ProcessGroupGloo = Watched
dist.init_process_group("hccl")
for _ in range(5):
    dist.all_reduce(torch.ones(1000))
assert not made and dist.get_backend() == "hccl"
dist.destroy_process_group()
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_torchrun(ranks: int, tmp_path: Path) -> None:
    run_program(ranks, BASIC, tmp_path)


def test_default_backends_of_both_names(tmp_path: Path) -> None:
    run_program(2, BASIC.replace('backend="hccl"', 'backend="cpu:hccl"').replace(' and dist.get_backend() == "hccl"', ""),
                tmp_path)


def test_mpirun(tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("needs mpirun")
    program = tmp_path / "program.py"
    program.write_text(UNDER_MPI)
    run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "-x", "MASTER_ADDR", "-x", "MASTER_PORT",
         "-x", "HABANA_VISIBLE_MODULES", sys.executable, str(program)], HABANA_VISIBLE_MODULES="4,5", MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(),
        OMPI_MCA_btl_tcp_if_include="lo", OMPI_MCA_oob_tcp_if_include="lo", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def test_statistics_count_library_calls(tmp_path: Path) -> None:
    output = run_program(2, COUNTED, tmp_path, HCCL_TORCH_STATS="1")
    for rank in range(2):
        assert f"hccl_torch: rank {rank}: all_reduce: 5 calls, 20000 bytes, 0 without a copy, 5 staged" in output, output


def test_two_nodes_of_one_rank_each(tmp_path: Path) -> None:
    """Ranks of two launchers, one rank on each of two emulated nodes, must form a group."""
    from launcher import Program, environment

    program = tmp_path / "program.py"
    program.write_text(BASIC)
    port = free_port()
    nodes = [Program([*torchrun(1)[:3], "--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "1", "--master-addr",
                      "127.0.0.1", "--master-port", port, str(program)],
                     environment(HCCL_NODE_ID=f"node-{node}", HCCL_EXPLAIN="1")) for node in range(2)]
    for node in nodes:
        code, output = node.finish(120)
        assert code == 0, output
