# SPDX-License-Identifier: Apache-2.0
"""Runs all checks for a database entry and collects their outcomes."""
from __future__ import annotations

import warnings
from collections.abc import Callable


class NotApplicable(Exception):
    """Raised if a check does not apply to a database entry."""


def outcomes_of(checks: dict[str, Callable[[], None]]) -> dict[str, str]:
    """Runs the checks. Returns the outcome of each check by name: "passed", "none" if the check does
    not apply, or the reason for the failure."""
    outcomes = {}
    for name, check in checks.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check()
            outcomes[name] = "passed"
        except NotApplicable:
            outcomes[name] = "none"
        except Exception as error:  # any exception is a failure
            outcomes[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
    return outcomes
