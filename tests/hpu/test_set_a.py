# SPDX-License-Identifier: Apache-2.0
"""Runs Gaudi programs that use Accelerate and Transformers on emulated devices, and compares the
results with those of one process on the CPU."""
import importlib.util
import re
from pathlib import Path

import pytest

from emulation import (BF16, EXACT, SCRIPTS, all_alone, hccl_hpu, one_after_another, report_of, reports_of,
                       require_same_training)
from test_launchers_inside import PROGRAM, require_all

pytestmark = pytest.mark.set_a

ACCELERATE = str(SCRIPTS / "train_accelerate.py")
TRANSFORMERS = str(SCRIPTS / "train_transformers.py")
JUDGES = ["test_ops", "test_sync", "test_script", "test_ddp_comm_hook", "test_distributed_data_loop"]


def accelerate_launch(processes: int, *words: str, folder: Path, **variables: str) -> str:
    return hccl_hpu("shell", "accelerate", "launch", "--num_processes", str(processes), *words, folder=folder, **variables)


@pytest.fixture(scope="module")
def expected() -> dict[str, dict]:
    """Returns the reports of one process on the CPU, by framework."""
    transformers = (TRANSFORMERS, "{folder}", "use_cpu=True", "save_strategy='no'")
    programs = {"accelerate": (ACCELERATE, "no"), "accelerate bf16": (ACCELERATE, "bf16"), "transformers": transformers,
                "transformers bf16": (*transformers, "bf16=True")}
    return dict(zip(programs, all_alone(*programs.values())))


def require_accelerate(found: dict, expected: dict, processes: int, tolerance: float = EXACT) -> None:
    assert (found["kind"], found["device"], found["backend"]) == ("MULTI_HPU", "hpu:0", "hccl"), found
    assert found["world"] == processes
    assert expected["device"] == "cpu"
    require_same_training(found, expected, tolerance)


def require_transformers(found: dict, expected: dict, processes: int, tolerance: float = EXACT) -> None:
    assert (found["device"], found["mode"], found["n_gpu"]) == ("hpu:0", "distributed", 1), found
    assert found["world"] == processes
    require_same_training(found, expected, tolerance)
    assert abs(found["evaluated"] - expected["evaluated"]) <= tolerance


def test_accelerate(expected: dict[str, dict], tmp_path: Path) -> None:
    """A plain Accelerator() must find the devices, use DDP over hccl, and reach the losses and
    weights of one process on the CPU."""
    plain, half = reports_of(accelerate_launch(2, *one_after_another((ACCELERATE, "no"), (ACCELERATE, "bf16")),
                                               folder=tmp_path), 2)
    require_accelerate(plain, expected["accelerate"], 2)
    require_accelerate(half, expected["accelerate bf16"], 2, BF16)


def test_accelerate_on_the_cpu(tmp_path: Path) -> None:
    """--cpu must turn the device off, as Accelerate documents."""
    found = report_of(hccl_hpu("shell", "accelerate", "launch", "--cpu", ACCELERATE, folder=tmp_path))
    assert found["device"] == "cpu" and found["world"] == 1, found


def test_accelerate_own_scripts(tmp_path: Path) -> None:
    """Accelerate's own scripts for several processes must pass unchanged, without a device
    argument."""
    folder = Path(importlib.util.find_spec("accelerate").origin).parent / "test_utils/scripts"
    programs = one_after_another(*[(str(folder / f"{script}.py"),) for script in JUDGES])
    output = accelerate_launch(2, *programs, folder=tmp_path)
    for script in JUDGES:
        assert len(re.findall(rf"^{script}\.py: hccl has made [1-9]\d* calls$", output, flags=re.M)) == 2, output


def test_eight_devices(expected: dict[str, dict], tmp_path: Path) -> None:
    """hccl-hpu must run Transformers and Accelerate on all eight devices of a machine in lazy
    mode."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    output = hccl_hpu("run", "-n", "8", *one_after_another(
        (str(program),), (TRANSFORMERS, str(tmp_path / "out"), "save_steps=2"), (ACCELERATE, "no")), folder=tmp_path,
        PT_HPU_LAZY_MODE="1")
    require_all(output, 8)
    transformers, accelerate = reports_of(output, 2)
    require_transformers(transformers, expected["transformers"], 8)
    assert (tmp_path / "out/checkpoint-2/model.safetensors").exists()
    require_accelerate(accelerate, expected["accelerate"], 8)


def test_transformers(expected: dict[str, dict], tmp_path: Path) -> None:
    """With only ddp_backend as a hint, Trainer must detect the device, checkpoint, evaluate,
    compute in bfloat16 and compile. A checkpoint from two devices, resumed on one device with two
    batches per step, must lead to the same result. The variables are from Gaudi's documentation."""
    named = {"PT_HPU_LAZY_MODE": "0", "PT_ENABLE_INT64_SUPPORT": "1"}
    trained = (TRANSFORMERS, str(tmp_path / "two"))
    plain, half, compiled = reports_of(hccl_hpu("run", "-n", "2", *one_after_another(
        (*trained, "save_steps=2"), (TRANSFORMERS, str(tmp_path / "half"), "save_strategy='no'", "bf16=True"),
        (TRANSFORMERS, str(tmp_path / "compiled"), "save_strategy='no'", "torch_compile=True")), folder=tmp_path, **named), 3)
    require_transformers(plain, expected["transformers"], 2)
    require_transformers(half, expected["transformers bf16"], 2, BF16)
    require_transformers(compiled, expected["transformers"], 2)
    assert compiled["compiler"] == "hpu_backend", compiled
    resumed = report_of(hccl_hpu("run", TRANSFORMERS, str(tmp_path / "one"), "save_strategy='no'", "--accumulate", "2",
                                 "--resume", str(tmp_path / "two/checkpoint-2"), folder=tmp_path))
    assert resumed["world"] == 1 and resumed["device"] == "hpu:0", resumed
    require_same_training(resumed, plain)
