# SPDX-License-Identifier: Apache-2.0
"""Tests ranks on separate hosts: network namespaces, and machines with RoCE devices."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher import FOLDER, Program, environment

HOSTS = FOLDER.parent / "support" / "hosts.sh"
ROOT = FOLDER.parent.parent


@pytest.fixture
def hosts():
    """Creates two network namespaces, yields their names, and deletes the namespaces at the end."""
    allowed = subprocess.run(["bash", str(HOSTS), "allowed"], capture_output=True, text=True)
    if allowed.returncode != 0:
        pytest.skip(f"needs network namespaces: {allowed.stdout.strip()}")
    tag = f"{os.getpid()}-torch"
    subprocess.run(["bash", str(HOSTS), "up", tag, "2"], check=True)
    try:
        yield [f"hccl-{tag}-{host}" for host in range(2)]
    finally:
        subprocess.run(["bash", str(HOSTS), "down", tag], check=True)


def test_two_hosts_over_tcp(hosts: list[str]) -> None:
    """With torchrun and two ranks on each of two hosts, training must be right, and traffic between
    the hosts must use TCP."""
    nodes = [Program(["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run", "--nnodes", "2",
                      "--nproc-per-node", "2", "--node-rank", str(node), "--master-addr", "10.213.0.1", "--master-port",
                      "29511", str(FOLDER / "rank.py"), "training:data_parallel", "hccl"],
                     environment(HCCL_SOCKET_IFNAME="eth0", GLOO_SOCKET_IFNAME="eth0", HCCL_EXPLAIN="1"))
             for node, name in enumerate(hosts)]
    for node in nodes:
        code, output = node.finish(180)
        assert code == 0, output
        assert "tcp" in output, output


def test_two_machines_over_roce() -> None:
    """Training must work with one rank in each of two nodes of a virtual machine with software RoCE
    devices."""
    machine = ROOT / "tests" / "support" / "rxe_machine.sh"
    if os.environ.get("HCCL_TEST_ROCE") != "1":
        pytest.skip("needs HCCL_TEST_ROCE=1: takes five minutes on an emulated processor")
    if subprocess.run([machine, "available"], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs RXE_VM, the script that runs a virtual machine with RoCE devices")
    rank = ('MASTER_ADDR=10.77.0.1 MASTER_PORT=29512 WORLD_SIZE=2 RANK=$RXE_NODE LOCAL_RANK=0 exec "$0" "$@"')
    program = Program([str(machine), "--nodes", "2", "--each", "--timeout", "1500", "--", "sh", "-c", rank, sys.executable,
                       str(FOLDER / "rank.py"), "training:data_parallel", "hccl"],
                      environment(HCCL_SOCKET_IFNAME="roce", HCCL_TRANSPORT="verbs", HCCL_EXPLAIN="1", TEST_TIMEOUT="1200"))
    code, output = program.finish(1600)
    assert code == 0, output
    assert "verbs" in output, output
