# SPDX-License-Identifier: Apache-2.0
"""Refuses to load the emulation if the vendor's packages are installed, because both contain packages with the same
names."""
from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

# The folder of this project's replacements for the vendor's packages. It is on sys.path only if the user requests the
# emulation.
SHIM_FOLDER = Path(__file__).resolve().parent / "shim"

# Marks this project's copies: a package or distribution with the vendor's name is ours if its metadata, or the
# beginning of its ``__init__.py``, contains this text.
MARK = "hccl-torch-hpu"

# The release of the vendor's software whose names and arguments the emulation provides.
EMULATED_RELEASE = "1.24.0"

_VENDOR_PACKAGE = "habana_frameworks"
_VENDOR_DISTRIBUTION = "habana-torch-plugin"


class VendorPackageError(ImportError):
    """Raised if the vendor's packages are installed. The emulation does not load alongside them."""


def refuse_beside_vendor() -> None:
    """Checks that the vendor's packages are not installed in this environment.

    Raises:
        VendorPackageError: a ``habana_frameworks`` other than this project's is on ``sys.path``, or a distribution
            "habana-torch-plugin" that does not name hccl-torch-hpu is installed.
    """
    found = find_vendor()
    if found is not None:
        raise VendorPackageError(
            f"hccl_torch_hpu: the Gaudi emulation does not load alongside the vendor's packages ({found}); use a "
            "virtual environment without them, or uninstall hccl-torch-hpu to work with a Gaudi")


def find_vendor() -> str | None:
    """Returns the location of the vendor's package or distribution, or None if there is none."""
    for entry in sys.path:
        package = Path(entry or ".") / _VENDOR_PACKAGE
        if package.is_dir() and not _is_ours(package):
            return str(package)
    for distribution in importlib.metadata.distributions(name=_VENDOR_DISTRIBUTION):
        if not is_our_distribution(distribution):
            return f"{_VENDOR_DISTRIBUTION} {distribution.version}"
    return None


def _is_ours(package: Path) -> bool:
    """Returns True if the package's first lines name this project, as in every copy of the shim."""
    start = package / "__init__.py"
    return start.is_file() and MARK in start.read_text(encoding="utf-8", errors="replace")[:2000]


def is_our_distribution(distribution: importlib.metadata.Distribution) -> bool:
    """Returns True if one of the distribution's own files states that this project wrote it."""
    return any(MARK in (distribution.read_text(name) or "") for name in ("METADATA", "PKG-INFO", "INSTALLER"))
