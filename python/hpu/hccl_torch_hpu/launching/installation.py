# SPDX-License-Identifier: Apache-2.0
"""Finds the emulation's parts, and checks an environment before a program is started in it."""
from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from .errors import LaunchError

DISTRIBUTION = "hccl-torch-hpu"
PACKAGE = "hccl_torch_hpu"
BUILT_FOR = "2.13"
MEND = "in a clone of this project, run: pip install --no-build-isolation --force-reinstall --no-deps ./python ./python/hpu"


@dataclass(frozen=True)
class Installation:
    """The installed emulation: its version, and the folders that programs need on their paths."""

    version: str
    shim: Path
    programs: Path
    stubs: list[Path]


def find_installation(variables: Mapping[str, str]) -> Installation:
    """Returns the locations of the emulation's parts. Loads neither torch nor the extension.

    Raises:
        LaunchError: the emulation was built for a different version of torch, a part is missing, the vendor's own
            packages are installed, or ``TORCH_DEVICE_BACKEND_AUTOLOAD`` is 0.
    """
    _require_torch()
    version = _version_of(DISTRIBUTION)
    if version is None or _version_of("hccl-torch") is None:
        missing = DISTRIBUTION if version is None else "hccl-torch"
        raise LaunchError(f"the distribution {missing} is not installed in this environment; {MEND}")
    package = Path(__file__).resolve().parents[1]
    if importlib.util.find_spec(f"{PACKAGE}._C") is None:
        raise LaunchError(f"{PACKAGE} lacks its extension _C; {MEND}")
    if not any(one.value.startswith(f"{PACKAGE}:") for one in metadata.entry_points(group="torch.backends")):
        raise LaunchError(f"{DISTRIBUTION} has no entry point for torch; {MEND}")
    _refuse_beside_vendor()
    shim = package / "shim"
    if not (shim / "habana_frameworks").is_dir():
        raise LaunchError(f"{PACKAGE} lacks its folder shim; {MEND}")
    if variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        raise LaunchError("TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from loading the emulated device; unset it")
    return Installation(version, shim, shim / "bin", _stubs(package))


def _require_torch() -> None:
    found = _version_of("torch")
    if found is None:
        raise LaunchError(f"torch is not installed in this environment; run: pip install torch=={BUILT_FOR}.0")
    if not found.startswith(f"{BUILT_FOR}."):
        raise LaunchError(f"{DISTRIBUTION} was built for torch {BUILT_FOR}, but this environment has torch {found}; "
                          f"run: pip install torch=={BUILT_FOR}.0")


def _refuse_beside_vendor() -> None:
    try:
        from ..vendor import refuse_beside_vendor

        refuse_beside_vendor()
    except ImportError as error:
        raise LaunchError(str(error).removeprefix(f"{PACKAGE}: ")) from None


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _stubs(package: Path) -> list[Path]:
    """Returns the folders with stubs of packages that programs import but do not need.

    Optimum imports torchvision for one model, and torchvision's wheel on PyPI cannot be loaded together with the CPU
    build of torch. The stub is used only if Optimum is installed and torchvision is not.
    """
    wanted = _version_of("optimum-habana") is not None and importlib.util.find_spec("torchvision") is None
    return [package / "stubs"] if wanted else []
