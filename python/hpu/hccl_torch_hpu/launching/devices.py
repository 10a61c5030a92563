# SPDX-License-Identifier: Apache-2.0
"""Determines which modules of the emulated node are visible to programs."""
from __future__ import annotations

from collections.abc import Mapping

from .errors import LaunchError

VISIBLE_MODULES = "HABANA_VISIBLE_MODULES"
BOX = "HCCL_DEVICE_COUNT"
MODULES_OF_A_BOX = 8


def visible_modules(variables: Mapping[str, str], per_node: int | None = None) -> list[int]:
    """Returns the numbers of the modules that are visible to programs.

    Args:
        variables: the environment, whose ``HABANA_VISIBLE_MODULES`` takes precedence unless it is not set or "all".
        per_node: the number of devices of an emulated node, or None for a whole machine.

    Raises:
        LaunchError: a variable has an invalid value.
    """
    named = variables.get(VISIBLE_MODULES, "").strip()
    if not named or named == "all":
        return list(range(per_node or size_of_box(variables)))
    words = [word.strip() for word in named.split(",")]
    if not all(word.isdecimal() for word in words) or len(set(words)) != len(words):
        raise LaunchError(f"{VISIBLE_MODULES}={named} must be distinct module numbers separated by commas, e.g. 0,1")
    return [int(word) for word in words]


def size_of_box(variables: Mapping[str, str]) -> int:
    """Returns the number of devices of one machine. Raises LaunchError if ``HCCL_DEVICE_COUNT`` is not a positive
    number."""
    named = variables.get(BOX, "").strip()
    if not named:
        return MODULES_OF_A_BOX
    if not named.isdecimal() or int(named) < 1:
        raise LaunchError(f"{BOX}={named} must be a positive number of devices")
    return int(named)


def require_devices(wanted: int, variables: Mapping[str, str], visible: list[int]) -> None:
    """Raises LaunchError if fewer devices are visible than processes are requested. Each process takes one device."""
    if wanted <= len(visible):
        return
    if variables.get(VISIBLE_MODULES, "").strip() not in ("", "all"):
        advice = f"name more modules in {VISIBLE_MODULES} (now {variables[VISIBLE_MODULES]})"
    else:
        advice = f"set {BOX}={wanted}"
    raise LaunchError(f"{wanted} processes need {wanted} devices, but the number of visible devices is {len(visible)}; "
                      f"{advice}")
