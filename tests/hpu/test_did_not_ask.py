# SPDX-License-Identifier: Apache-2.0
"""Tests that the emulation does not affect processes that do not request it, and that incomplete
installations are refused."""
import json
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from emulation import private
from launcher import run

SITE = Path(sysconfig.get_path("purelib"))

# Properties that the distribution must not change in a process that does not request the emulation.
STATE = """
import json, os, sys, threading
import torch, torch.distributed as dist
keys = ["HPU", "AutogradHPU", "AutocastHPU", "CPU", "AutogradCPU", "PrivateUse1"]
state = {
    "registrations": {key: len(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in keys},
    "all": len(torch._C._dispatch_get_all_op_names()),
    "hpu": hasattr(torch, "hpu"),
    "attribute": hasattr(torch.Tensor, "hpu"),
    "accelerator": str(torch.accelerator.current_accelerator()),
    "path": sys.path,
    "environment": dict(os.environ),
    "backends": dist.Backend.backend_list,
    "devices": dict(dist.Backend.default_device_backend_map),
    "threads": threading.active_count(),
    "modules": sorted(name for name in sys.modules if "hccl" in name or "habana" in name),
    "maps": sorted({line.split("/")[-1].strip() for line in open("/proc/self/maps") if ".so" in line}),
    "hooks": [str(one) for one in sys.meta_path],
}
print(json.dumps(state))
"""


def site(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Creates a site folder with links to this environment's packages, except those whose names
    begin with one of ``without``."""
    folder.mkdir()
    for entry in SITE.iterdir():
        if not entry.name.startswith(without):
            (folder / entry.name).symlink_to(entry)
    return folder


def python(packages: Path, *words: str, folder: Path, code: int = 0, **variables: str) -> str:
    named = private(folder) | {"PYTHONPATH": str(packages)} | variables
    return run([sys.executable, "-S", *words], code=code, **named)


def state(packages: Path, folder: Path, **variables: str) -> dict:
    text = python(packages, "-c", STATE, folder=folder, **variables).splitlines()[-1]
    return json.loads(text.replace(str(packages), "SITE"))


def without_own(found: dict) -> dict:
    """Returns the state without the variables that name the test or its folder."""
    own = {"PYTEST_CURRENT_TEST", *private(Path())}
    return found | {"environment": {name: value for name, value in found["environment"].items() if name not in own}}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site(tmp_path_factory.mktemp("packages") / "with")


@pytest.fixture(scope="module")
def untouched(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the state of a process that did not request the emulation, as JSON."""
    return json.dumps(state(packages, tmp_path_factory.mktemp("untouched")))


def test_changes_nothing(untouched: str, tmp_path: Path) -> None:
    without = state(site(tmp_path / "without", without=("hccl_torch_hpu",)), tmp_path)
    without, there = without_own(without), without_own(json.loads(untouched))
    assert there.pop("modules") in ([*without["modules"], "hccl_torch_hpu"], without["modules"])
    without.pop("modules")
    assert there == without
    assert without["registrations"]["HPU"] == 0 or not without["hpu"]


@pytest.mark.parametrize("value", ["0", ""])
def test_changes_nothing_if_switched_off(value: str, packages: Path, untouched: str, tmp_path: Path) -> None:
    found = state(packages, tmp_path, HCCL_EMU_HPU=value)
    assert found["environment"].pop("HCCL_EMU_HPU") == value
    assert without_own(found) == without_own(json.loads(untouched))


def test_the_switch_changes_the_state(packages: Path, tmp_path: Path) -> None:
    """With HCCL_EMU_HPU=1, the state must differ, which proves that the comparison above can fail."""
    found = state(packages, tmp_path, HCCL_EMU_HPU="1")
    assert found["hpu"] and found["accelerator"].startswith("hpu") and found["registrations"]["HPU"] > 0


def refused(packages: Path, folder: Path, **variables: str) -> str:
    """Runs the launcher, which must fail, and returns its only line of output."""
    said = python(packages, "-m", "hccl_torch_hpu.launch", "shell", "true", folder=folder, code=2, **variables)
    assert said.startswith("hccl-hpu: ") and said.count("\n") == 1, said
    return said


def add_distribution(packages: Path, name: str, version: str) -> None:
    information = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_refuses_other_versions_of_torch(tmp_path: Path) -> None:
    packages = site(tmp_path / "site", without=("torch-",))
    assert "torch is not installed in this environment; run: pip install torch==2.13.0" in refused(packages, tmp_path)
    add_distribution(packages, "torch", "2.12.1")
    said = refused(packages, tmp_path)
    assert "built for torch 2.13, but this environment has torch 2.12.1; run: pip install torch==2.13.0" in said


@pytest.mark.parametrize("prefix, missing", [("hccl_torch_hpu-", "hccl-torch-hpu"), ("hccl_torch-", "hccl-torch")])
def test_names_a_missing_distribution(prefix: str, missing: str, tmp_path: Path) -> None:
    packages = site(tmp_path / "site", without=(prefix,))
    assert f"the distribution {missing} is not installed in this environment" in refused(packages, tmp_path)


def test_names_a_missing_extension(tmp_path: Path) -> None:
    packages = site(tmp_path / "site", without=("hccl_torch_hpu",))
    for entry in SITE.glob("hccl_torch_hpu*"):
        shutil.copytree(entry, packages / entry.name, ignore=shutil.ignore_patterns("_C*"))
    assert "hccl_torch_hpu lacks its extension _C; in a clone of this project, run: pip install" in refused(packages, tmp_path)


def test_refuses_the_vendors_packages(tmp_path: Path) -> None:
    packages = site(tmp_path / "site")
    vendors = tmp_path / "vendors/habana_frameworks"
    vendors.mkdir(parents=True)
    (vendors / "__init__.py").write_text("")
    said = refused(packages, tmp_path, PYTHONPATH=f"{packages}:{vendors.parent}")
    assert "does not load alongside the vendor's packages" in said and str(vendors) in said
    add_distribution(packages, "habana-torch-plugin", "1.22.0")
    assert "habana-torch-plugin 1.22.0" in refused(packages, tmp_path)
