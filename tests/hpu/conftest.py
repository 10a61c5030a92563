# SPDX-License-Identifier: Apache-2.0
"""Defines markers for tests that need a certain set of frameworks, skips these tests if the set is
not installed, and adds folders to the import path."""
import sys
from importlib import metadata
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
for folder in (FOLDER.parent / "torch", FOLDER):
    sys.path.insert(0, str(folder))

# The distribution and version prefix that identify each set's environment. ./dev test --hpu
# A|B|C creates these environments from python/hpu/sets/*.lock.
SETS = {"set_a": ("transformers", "5."), "set_b": ("lightning-habana", "1.6."), "set_c": ("optimum-habana", "1.21.")}


def pytest_configure(config: pytest.Config) -> None:
    for name in SETS:
        config.addinivalue_line("markers", f"{name}: needs the frameworks of set {name[-1].upper()}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, (distribution, version) in SETS.items():
        if item.get_closest_marker(name) is None:
            continue
        try:
            there = metadata.version(distribution).startswith(version)
        except metadata.PackageNotFoundError:
            there = False
        if not there:
            pytest.skip(f"needs set {name[-1].upper()}: ./dev test --hpu {name[-1].upper()}")
