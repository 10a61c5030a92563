# SPDX-License-Identifier: Apache-2.0
"""The environment variables through which programs find an emulated Gaudi."""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .devices import VISIBLE_MODULES, visible_modules
from .installation import Installation
from .private_folder import folder_of_distributions

SWITCH = "HCCL_EMU_HPU"
QUIET = "HCCL_EMU_HPU_QUIET"


def environment_of_programs(installation: Installation, variables: Mapping[str, str],
                            per_node: int | None = None) -> dict[str, str]:
    """Returns a copy of the variables, changed so that programs find the emulated device and its packages.

    In ``PYTHONPATH`` and ``PATH``, the emulation's folders come before the previous entries. The folders with stubs
    come last in ``PYTHONPATH``. ``OMP_NUM_THREADS`` and ``HABANA_VISIBLE_MODULES`` keep the values that the user has
    set, except that a list of numbers replaces ``HABANA_VISIBLE_MODULES=all``.

    Args:
        per_node: the number of devices of an emulated node, or None for a whole machine.

    Raises:
        LaunchError: a variable has an invalid value, or the cache cannot be written.
    """
    changed = dict(variables)
    changed[SWITCH] = "1"
    modules = visible_modules(variables, per_node)
    changed[VISIBLE_MODULES] = ",".join(map(str, modules))
    changed.setdefault("OMP_NUM_THREADS", "1")
    imported = [installation.shim, folder_of_distributions(installation.version)]
    changed["PYTHONPATH"] = _with_last(_with_first(variables.get("PYTHONPATH", ""), imported), installation.stubs)
    found = [installation.programs]
    if sys.prefix != sys.base_prefix:  # finds pip, torchrun and accelerate even if the environment is not activated
        found.append(Path(sys.executable).parent)
    changed["PATH"] = _with_first(variables.get("PATH", os.defpath), found)
    return changed


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Returns the assignments, one per variable, that turn the first environment into the second."""
    return [f"{name}={value}" for name, value in sorted(after.items()) if before.get(name) != value]


def _with_first(path: str, folders: list[Path]) -> str:
    first = [str(folder) for folder in folders]
    return os.pathsep.join(first + [one for one in path.split(os.pathsep) if one and one not in first])


def _with_last(path: str, folders: list[Path]) -> str:
    last = [str(folder) for folder in folders]
    return os.pathsep.join([one for one in path.split(os.pathsep) if one and one not in last] + last)
