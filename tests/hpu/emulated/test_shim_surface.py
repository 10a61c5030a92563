# SPDX-License-Identifier: Apache-2.0
"""Tests that each name that frameworks use exists, and that a missing name raises a clear error."""
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from conftest import HAS_DEVICE, SHIM

NAMES = [line for line in (Path(__file__).parent / "surface.txt").read_text().splitlines()
         if line and not line.startswith("#")]

# Names of torch.hpu that the device's module defines.
OF_THE_DEVICE = ("Event", "Stream", "stream", "current_device", "default_stream", "get_autocast_hpu_dtype",
                 "get_device_name", "get_rng_state",
                 "get_rng_state_all", "is_autocast_hpu_enabled", "manual_seed", "manual_seed_all", "mem_get_info",
                 "memory_stats", "random",
                 "set_device", "set_rng_state", "set_rng_state_all", "synchronize")


def resolve(name):
    """Returns the object with a dotted name: imports the longest prefix that is a module, as
    programs do, and looks up the rest as attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is not None and not module.startswith(error.name):
                raise
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no part of {name} can be imported")


def needs_device(name):
    return name.startswith("torch.hpu") or (
        ".hpu." in name.removeprefix("habana_frameworks.torch") and set(name.split(".")) & set(OF_THE_DEVICE))


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name):
    if needs_device(name) and not HAS_DEVICE:
        pytest.skip("needs the installed emulation and HCCL_EMU_HPU=1: the name is torch.hpu's")
    import habana_frameworks.torch  # noqa: F401

    found = resolve(name)
    assert found is not None
    if name.startswith("torch.ops.hpu."):
        assert found.overloads()


@pytest.mark.parametrize("module, name", [
    ("habana_frameworks.torch", "nothing"), ("habana_frameworks.torch.core", "nothing"),
    ("habana_frameworks.torch.hpu", "nothing"), ("habana_frameworks.torch.hpex.kernels", "fp8_fused_sdpa"),
    ("habana_frameworks.torch.hpex.optimizers", "SparseSGD"), ("habana_frameworks.torch", "gpu_migration"),
    ("habana_dataloader", "nothing"), ("habana_quantization_toolkit", "nothing"), ("habana_frameworks.mediapipe",
                                                                                   "nothing"),
])
def test_absent_name_gives_an_error_with_its_full_name(module, name):
    found = importlib.import_module(module)
    assert not hasattr(found, name)
    with pytest.raises(AttributeError, match=rf"^{module}\.{name} is not part of this emulation.*; \w+"):
        getattr(found, name)
    with pytest.raises(ImportError, match=rf"^{module}\.{name} is not part of this emulation.*; \w+"):
        exec(f"from {module} import {name}")


def test_gpu_migration_names_the_replacement():
    with pytest.raises(ImportError, match="write hpu instead of cuda"):
        importlib.import_module("habana_frameworks.torch.gpu_migration")


def test_media_pipeline_steps_exist_but_cannot_be_created():
    from habana_frameworks.mediapipe import fn
    from habana_frameworks.mediapipe.mediapipe import MediaPipe

    class Pipeline(MediaPipe):
        def __init__(self):
            super().__init__(device="hpu", batch_size=2)

    for make in (Pipeline, fn.ImageDecoder, fn.SomethingElse):
        with pytest.raises(NotImplementedError, match=f"{make.__name__}: .*torchvision"):
            make()
    with pytest.raises(AttributeError, match="mediapipe.fn.image_decoder"):
        fn.image_decoder


def test_every_shim_file_states_that_it_is_an_emulation():
    files = [one for one in SHIM.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
    assert len(files) > 40
    for one in files:
        assert "hccl-torch-hpu" in one.read_text() and "not a product" in " ".join(one.read_text().split()), one


def refused(tmp_path, code="import habana_frameworks"):
    paths = [str(tmp_path), *(one for one in sys.path if one != str(SHIM)), str(SHIM)]
    return subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {paths!r}; {code}"], capture_output=True,
                          text=True, timeout=120)


VENDOR_CHECK = "from hccl_torch_hpu import vendor; print(vendor.find_vendor()); vendor.refuse_beside_vendor()"


def test_vendor_package_is_refused(tmp_path):
    (tmp_path / "habana_frameworks").mkdir()
    (tmp_path / "habana_frameworks/__init__.py").write_text("")
    result = refused(tmp_path, VENDOR_CHECK)
    assert result.returncode == 1 and str(tmp_path) in result.stdout
    assert "does not load alongside the vendor's packages" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("summary, is_refused", [("Plugin", True), ("An entry of hccl-torch-hpu", False)])
def test_only_the_vendors_distribution_is_refused(tmp_path, summary, is_refused):
    info = tmp_path / "habana_torch_plugin-1.24.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.24.0\n"
                                   f"Summary: {summary}\n")
    result = refused(tmp_path, VENDOR_CHECK)
    assert (result.returncode == 1) == is_refused
    assert ("habana-torch-plugin 1.24.0" in result.stdout) == is_refused


def test_packages_load_without_a_device_and_report_none():
    if HAS_DEVICE:
        pytest.skip("needs a process without the device")
    import habana_frameworks.torch.hpu as hpu
    from habana_frameworks.torch.utils.library_loader import is_habana_available

    assert not hpu.is_available() and hpu.device_count() == 0 and not is_habana_available()
    with pytest.raises(AttributeError, match="hccl-hpu run"):
        hpu.memory_stats


def test_torch_hpu_has_the_names_of_the_package():
    if not HAS_DEVICE:
        pytest.skip("needs the installed emulation and HCCL_EMU_HPU=1")
    import habana_frameworks.torch.hpu as hpu

    for name in hpu.__all__:
        assert getattr(torch.hpu, name) is getattr(hpu, name)
    assert hpu.current_stream() is not None and hpu.get_device_name().endswith("(emulated)")
