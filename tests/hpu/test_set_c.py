# SPDX-License-Identifier: Apache-2.0
"""Tests Optimum for Gaudi on emulated devices: compares its unchanged fast_ddp.py and GaudiTrainer
with one process on the CPU."""
from pathlib import Path

import pytest

from emulation import BF16, EXACT, SCRIPTS, alone, hccl_hpu, report_of, require_same_training
from launcher import free_port

pytestmark = pytest.mark.set_c

FAST_DDP = str(SCRIPTS / "train_fast_ddp.py")
OPTIMUM = str(SCRIPTS / "train_optimum.py")
TRANSFORMERS = str(SCRIPTS / "train_transformers.py")
SPAWN = str(SCRIPTS / "spawn.py")


@pytest.mark.parametrize("lazy", ["0", "1"])
@pytest.mark.parametrize("processes, kind", [(2, "plain"), (2, "graphs"), (8, "graphs")])
def test_fast_ddp(processes: int, kind: str, lazy: str, tmp_path: Path) -> None:
    """Gradients must be right in every step, with and without HPU graphs, although the program does
    not wait for the collective."""
    found = report_of(hccl_hpu("run", "-n", str(processes), FAST_DDP, kind, folder=tmp_path, PT_HPU_LAZY_MODE=lazy))
    assert found["world"] == processes
    require_same_training(found, alone(FAST_DDP, "cpu"))


def test_stale_gradients_are_detected(tmp_path: Path) -> None:
    """The comparison above must detect graphs whose replay does nothing, with which every step would
    reuse the first step's gradients."""
    found = report_of(hccl_hpu("run", "-n", "2", FAST_DDP, "stale", folder=tmp_path))
    with pytest.raises(AssertionError):
        require_same_training(found, alone(FAST_DDP, "cpu"))


def spawn(launcher: str, size: int, *program: str, folder: Path, **variables: str) -> dict:
    """Runs a program on a free port, as gaudi_spawn.py does. Returns its report."""
    named = {"PET_MASTER_PORT": free_port(), "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo"}
    return report_of(hccl_hpu("shell", "python", SPAWN, launcher, str(size), *program, folder=folder, **(named | variables)))


MODES = {
    "ddp": ([], "1", EXACT),
    "ddp-eager": (["use_lazy_mode=False"], "0", EXACT),
    # Gradients are sent as bfloat16 by default.
    "fast_ddp": (["distribution_strategy='fast_ddp'"], "1", BF16),
    "fast_ddp-eager": (["distribution_strategy='fast_ddp'", "use_lazy_mode=False"], "0", BF16),
    "fast_ddp-graphs": (["distribution_strategy='fast_ddp'", "use_hpu_graphs_for_training=True"], "1", BF16),
}


@pytest.mark.parametrize("size, mode", [*[(2, mode) for mode in MODES], (8, "fast_ddp")])
def test_gaudi_trainer(size: int, mode: str, tmp_path: Path) -> None:
    """Each strategy must give the same results as Transformers' Trainer in one process on the
    CPU."""
    arguments, lazy, tolerance = MODES[mode]
    found = spawn("torchrun", size, OPTIMUM, str(tmp_path / "out"), *arguments, folder=tmp_path, PT_HPU_LAZY_MODE=lazy)
    assert found["world"] == size and found["device"].startswith("hpu"), found
    assert ("DistributedDataParallel" in found["wrapped"]) == mode.startswith("ddp"), found["wrapped"]
    expected = alone(TRANSFORMERS, "{folder}", "use_cpu=True", "save_strategy='no'")
    require_same_training(found, expected, tolerance)


def test_gaudi_trainer_on_one_device(tmp_path: Path) -> None:
    found = report_of(hccl_hpu("run", OPTIMUM, str(tmp_path / "out"), folder=tmp_path, PT_HPU_LAZY_MODE="1"))
    assert found["world"] == 1 and found["device"].startswith("hpu"), found
    expected = alone(TRANSFORMERS, "{folder}", "use_cpu=True", "save_strategy='no'")
    require_same_training(found, expected)
