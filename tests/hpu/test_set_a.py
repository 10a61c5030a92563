# SPDX-License-Identifier: Apache-2.0
"""Accelerate and Transformers on emulated devices: what their users write for Gaudi, held against one process on the CPU."""
import importlib.util
from pathlib import Path

import pytest

from emulation import BF16, EXACT, SCRIPTS, alone, hccl_hpu, report_of, require_same_training

pytestmark = pytest.mark.set_a

ACCELERATE = str(SCRIPTS / "train_accelerate.py")
TRANSFORMERS = str(SCRIPTS / "train_transformers.py")
JUDGES = ["test_ops", "test_sync", "test_script", "test_ddp_comm_hook", "test_distributed_data_loop"]


def accelerate_launch(processes: int, *words: str, folder: Path, **variables: str) -> str:
    return hccl_hpu("shell", "accelerate", "launch", "--num_processes", str(processes), *words, folder=folder, **variables)


@pytest.mark.parametrize("processes, precision", [(2, "no"), (2, "bf16"), (8, "no")])
def test_accelerate(processes: int, precision: str, tmp_path: Path) -> None:
    """A plain Accelerator() finds the devices: DDP over hccl, and the losses and weights of one process on the CPU."""
    found = report_of(accelerate_launch(processes, ACCELERATE, precision, folder=tmp_path))
    assert (found["kind"], found["device"], found["backend"]) == ("MULTI_HPU", "hpu:0", "hccl"), found
    assert found["world"] == processes
    expected = alone(ACCELERATE, precision)
    assert expected["device"] == "cpu"
    require_same_training(found, expected, BF16 if precision == "bf16" else EXACT)


def test_accelerate_on_the_cpu(tmp_path: Path) -> None:
    """--cpu turns the device off, as Accelerate documents it."""
    found = report_of(hccl_hpu("shell", "accelerate", "launch", "--cpu", ACCELERATE, folder=tmp_path))
    assert found["device"] == "cpu" and found["world"] == 1, found


@pytest.mark.parametrize("script", JUDGES)
def test_accelerate_judges(script: str, tmp_path: Path) -> None:
    """The scripts with which Accelerate tests itself on several processes, as they come with it, and with no argument about
    the device."""
    path = Path(importlib.util.find_spec("accelerate").origin).parent / "test_utils/scripts" / f"{script}.py"
    output = accelerate_launch(2, str(path), folder=tmp_path, HCCL_TORCH_STATS="1")
    for rank in range(2):
        assert f"hccl_torch: rank {rank}: " in output, output


@pytest.mark.parametrize("processes", [2, 8])
def test_transformers(processes: int, tmp_path: Path) -> None:
    """Trainer detects the device with no hint but ddp_backend, and checkpoints and evaluates on it."""
    found = report_of(hccl_hpu("run", "-n", str(processes), TRANSFORMERS, str(tmp_path / "out"), "save_steps=2",
                               folder=tmp_path))
    assert (found["device"], found["mode"], found["n_gpu"]) == ("hpu:0", "distributed", 1), found
    expected = alone(TRANSFORMERS, "{folder}", "use_cpu=True", "save_strategy='no'")
    require_same_training(found, expected)
    assert abs(found["evaluated"] - expected["evaluated"]) <= EXACT
    assert (tmp_path / "out/checkpoint-2/model.safetensors").exists()


MODES = {
    "eager": ({"PT_HPU_LAZY_MODE": "0"}, []),
    "lazy": ({"PT_HPU_LAZY_MODE": "1"}, []),
    "int64": ({"PT_HPU_LAZY_MODE": "0", "PT_ENABLE_INT64_SUPPORT": "1"}, []),
    "bf16": ({"PT_HPU_LAZY_MODE": "0"}, ["bf16=True"]),
    "compiled": ({"PT_HPU_LAZY_MODE": "0"}, ["torch_compile=True"]),
}


@pytest.mark.parametrize("mode", MODES)
def test_transformers_modes(mode: str, tmp_path: Path) -> None:
    """The variables and arguments that the documents name for Gaudi."""
    variables, more = MODES[mode]
    found = report_of(hccl_hpu("run", "-n", "2", TRANSFORMERS, str(tmp_path / "out"), "save_strategy='no'", *more,
                               folder=tmp_path, **variables))
    assert found["device"] == "hpu:0" and found["world"] == 2, found
    if mode == "compiled":
        assert found["compiler"] == "hpu_backend", found
    on_cpu = [one for one in more if not one.startswith("torch_compile")]
    expected = alone(TRANSFORMERS, "{folder}", "use_cpu=True", "save_strategy='no'", *on_cpu)
    require_same_training(found, expected, BF16 if mode == "bf16" else EXACT)


def test_transformers_resumes_on_another_number_of_devices(tmp_path: Path) -> None:
    """A checkpoint of two devices goes on on one, which takes two batches a step, and arrives where two would have."""
    found = report_of(hccl_hpu("run", "-n", "2", TRANSFORMERS, str(tmp_path / "two"), "save_steps=2", folder=tmp_path))
    resumed = report_of(hccl_hpu("run", TRANSFORMERS, str(tmp_path / "one"), "save_strategy='no'", "--accumulate", "2",
                                 "--resume", str(tmp_path / "two/checkpoint-2"), folder=tmp_path))
    assert resumed["world"] == 1 and resumed["device"] == "hpu:0", resumed
    require_same_training(resumed, found)
