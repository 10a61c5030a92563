# SPDX-License-Identifier: Apache-2.0
"""The state of 8-bit training in this thread: whether it is enabled, and its recipe."""
from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from hccl_torch_hpu import devices
from hccl_torch_hpu.transformer_engine.recipe import DelayedScaling


@dataclasses.dataclass
class Mode:
    """The settings of the innermost ``fp8_autocast``."""

    enabled: bool = False
    calibrating: bool = False
    force_measurement: bool | None = None
    recipe: DelayedScaling = dataclasses.field(default_factory=DelayedScaling)
    group: Any = None


_local = threading.local()


def mode() -> Mode:
    """Returns the mode of the calling thread."""
    return getattr(_local, "mode", None) or Mode()


def is_fp8_available() -> tuple[bool, str]:
    """Returns whether the emulated device computes with 8-bit floats, and the reason if it does not."""
    if devices.has_fp8():
        return True, ""
    return False, f"{devices.device_type().name} has no 8-bit floats; set {devices.VARIABLE}=gaudi2 or gaudi3"


@contextlib.contextmanager
def fp8_autocast(enabled: bool = False, force_measurement: bool | None = None, calibrating: bool = False,
                 fp8_recipe: DelayedScaling | Mapping[str, Any] | None = None, fp8_group: Any = None) -> Iterator[None]:
    """Lets the modules of this package compute with 8-bit floats inside the context.

    Args:
        enabled: switches 8-bit floats on, or off inside an outer context.
        force_measurement: measures magnitudes in each step if it is True, in none if it is False, and as the recipe
            requests if it is None.
        calibrating: measures magnitudes without using 8-bit floats; for ``enabled=False``.
        fp8_recipe: the recipe, or its arguments by name; ``DelayedScaling()`` if it is None.
        fp8_group: the ranks whose magnitudes are reduced; all ranks if it is None.

    Raises:
        RuntimeError: ``enabled`` is True, but the emulated device has no 8-bit floats.
    """
    available, reason = is_fp8_available()
    if enabled and not available:
        raise RuntimeError(f"fp8_autocast: {reason}")
    if isinstance(fp8_recipe, Mapping):
        fp8_recipe = DelayedScaling(**fp8_recipe)
    before = getattr(_local, "mode", None)
    _local.mode = Mode(enabled, calibrating, force_measurement, fp8_recipe or DelayedScaling(), fp8_group)
    try:
        yield
    finally:
        _local.mode = before


class FP8GlobalStateManager:
    """The settings of the innermost ``fp8_autocast`` of this thread."""

    @staticmethod
    def is_fp8_enabled() -> bool:
        """Returns True inside ``fp8_autocast(enabled=True)``."""
        return mode().enabled

    @staticmethod
    def is_fp8_calibration() -> bool:
        """Returns True inside ``fp8_autocast(calibrating=True)``."""
        return mode().calibrating

    @staticmethod
    def get_fp8_recipe() -> DelayedScaling:
        """Returns the recipe."""
        return mode().recipe

    @staticmethod
    def get_fp8_group() -> Any:
        """Returns the group whose magnitudes are reduced, or None for all ranks."""
        return mode().group


class activation_checkpointing(contextlib.ContextDecorator):  # noqa: N801 (the name that programs use)
    """A context or decorator for activation checkpointing. Has no effect: this package's modules detect by themselves
    that a forward pass runs again, and reuse the scales of its first run."""

    def __enter__(self) -> activation_checkpointing:
        return self

    def __exit__(self, *error: Any) -> None:
        return None
