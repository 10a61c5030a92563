# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the emulated device. With the same seed, the device's generator draws the same numbers as the
CPU's generator."""
from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from hccl_torch_hpu import _C

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]

_generator: torch.Generator = _C.default_generator()
default_generators = (_generator,)


def get_rng_state(device: Any = "hpu") -> torch.Tensor:
    """Returns the state of the device's generator as a CPU tensor of bytes."""
    return _generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "hpu") -> None:
    """Sets the state of the device's generator to a result of ``get_rng_state()``."""
    _generator.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Returns the states of all devices of this process, as a list with one element."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices of this process. Uses only the first state, because there is only one device."""
    for state in list(new_states)[:1]:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    """Seeds the device's generator."""
    _generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def _seed_with_torch() -> None:
    """Makes ``torch.manual_seed()`` and ``torch.seed()`` also seed this device, as they seed other devices."""
    for name in ("manual_seed", "seed"):
        original = getattr(torch.random, name)

        @functools.wraps(original)
        def seeding(*args: Any, _original=original) -> Any:
            result = _original(*args)
            manual_seed(torch.initial_seed())
            return result

        for module in (torch, torch.random):
            setattr(module, name, seeding)


def seed() -> None:
    """Seeds the device's generator at random."""
    _generator.seed()


seed_all = seed


def initial_seed() -> int:
    """Returns the seed of the device's generator."""
    return _generator.initial_seed()
