# SPDX-License-Identifier: Apache-2.0
"""Errors for names that the emulation lacks. Each states the full name and one alternative."""
from __future__ import annotations

import dis
import sys
from typing import Any, Callable, NoReturn

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def is_import_statement(frame: Any) -> bool:
    """Returns True if the frame is executing ``from module import name``.

    In this statement, Python replaces an AttributeError's message with its own, so a missing name must raise
    ImportError.
    """
    return frame is not None and 0 <= frame.f_lasti < len(frame.f_code.co_code) and (
        frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM)


def raise_missing(module: str, name: str, instead: str, frame: Any) -> NoReturn:
    """Raises an exception whose message the statement in ``frame`` preserves.

    Raises:
        ImportError: the frame is executing ``from module import name``.
        AttributeError: in other statements, so that ``hasattr`` and ``getattr`` with a default work.
    """
    text = f"{module}.{name} is not part of this emulation of Gaudi (hccl-torch-hpu); {instead}"
    if is_import_statement(frame):
        raise ImportError(text, name=module)
    raise AttributeError(text, name=name)


def missing(module: str, instead: str, **special: str) -> Callable[[str], Any]:
    """Returns a module-level ``__getattr__`` that raises an error for every name.

    Args:
        module: the module's full name.
        instead: the alternative for names that are not in ``special``.
        special: alternatives by name.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'", name=name)
        raise_missing(module, name, special.get(name, instead), sys._getframe(1))

    return __getattr__


def forwarding(module: str, target: Any) -> Callable[[str], Any]:
    """Returns a module-level ``__getattr__`` that looks up names in ``target``, unless they begin with two underscores.

    Args:
        module: the full name of the module that forwards.
        target: the module whose names are forwarded.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'", name=name)
        return getattr(target, name)

    return __getattr__
