# SPDX-License-Identifier: Apache-2.0
"""Tests Lightning on emulated devices: compares each Trainer in lightning-habana's documentation
with one process on the CPU."""
from pathlib import Path

import pytest

from emulation import BF16, EXACT, HCCL_HPU, LIMIT, SCRIPTS, alone, hccl_hpu, private, report_of, require_same_training
from launcher import Program, environment, free_port
from test_hosts import hosts  # noqa: F401  (a fixture)

pytestmark = pytest.mark.set_b

SCRIPT = str(SCRIPTS / "train_lightning.py")


def train(kind: str, folder: Path, *more: str, **variables: str) -> dict:
    return report_of(hccl_hpu("run", SCRIPT, kind, *more, folder=folder, **variables))


@pytest.mark.parametrize("kind, devices", [("one", 1), ("two", 2), ("eight", 8), ("accelerator", 2), ("parallel", 2),
                                           ("bf16", 2)])
def test_trainer(kind: str, devices: int, tmp_path: Path) -> None:
    """Lightning must start the ranks, and all losses and weights must equal those of one process on
    the CPU."""
    found = train(kind, tmp_path)
    assert found["device"] == "hpu" and found["accelerator"] == "HPUAccelerator", found
    assert found["world"] == found["devices"] == devices, found
    is_half = kind == "bf16"
    require_same_training(found, alone(SCRIPT, "cpu-bf16" if is_half else "cpu"), BF16 if is_half else EXACT)


@pytest.mark.parametrize("kind", ["auto", "bare"])
def test_trainer_uses_all_devices(kind: str, tmp_path: Path) -> None:
    """devices="auto", and a Trainer() without arguments, must use the visible modules and write
    checkpoints."""
    found = train(kind, tmp_path, str(tmp_path / "checkpoints"), HABANA_VISIBLE_MODULES="0,1")
    assert found["world"] == 2 and found["device"] == "hpu", found
    assert list((tmp_path / "checkpoints").rglob("*.ckpt")), "no checkpoint"
    require_same_training(found, alone(SCRIPT, "cpu"))


def start_nodes(kind: str, folder: Path, address: str, own: list[dict], prefixes: list[list[str]], size: int) -> list[Program]:
    """Starts a node for each entry of ``own``, with the documented variables for several nodes."""
    port = free_port()
    return [Program([*prefix, HCCL_HPU, "run", SCRIPT, kind],
                    environment(**(private(folder) | {"MASTER_ADDR": address, "MASTER_PORT": port, "WORLD_SIZE": str(size),
                                                      "NODE_RANK": str(node), "HABANA_VISIBLE_MODULES": "0,1"} | more)))
            for node, (more, prefix) in enumerate(zip(own, prefixes))]


def finish(nodes: list[Program]) -> list[str]:
    ended = [node.finish(LIMIT) for node in nodes]
    for code, output in ended:
        assert code == 0, "\n".join(output for _, output in ended)
    return [output for _, output in ended]


@pytest.mark.parametrize("kind, size", [("node-of-one", 2), ("node-of-two", 4)])
def test_two_simulated_nodes(kind: str, size: int, tmp_path: Path) -> None:
    """num_nodes=2 with MASTER_ADDR, MASTER_PORT, WORLD_SIZE and NODE_RANK must work as two nodes on
    loopback."""
    nodes = start_nodes(kind, tmp_path, "127.0.0.1", [{"HCCL_NODE_ID": "a"}, {"HCCL_NODE_ID": "b"}], [[], []], size)
    found = report_of("".join(finish(nodes)))
    assert found["world"] == size and found["nodes"] == 2 and found["strategy"] == "HPUParallelStrategy", found
    require_same_training(found, alone(SCRIPT, "cpu"))


def test_two_hosts(hosts: list[str], tmp_path: Path) -> None:  # noqa: F811
    """num_nodes=2 must work in two network namespaces, with gradients sent over TCP."""
    own = {"HCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0", "HCCL_EXPLAIN": "1"}
    nodes = start_nodes("node-of-two", tmp_path, "10.213.0.1", [own, own],
                        [["ip", "netns", "exec", name] for name in hosts], 4)
    outputs = finish(nodes)
    found = report_of("".join(outputs))
    assert found["world"] == 4 and any("tcp" in output for output in outputs), outputs
    require_same_training(found, alone(SCRIPT, "cpu"))
