# SPDX-License-Identifier: Apache-2.0
"""How the checks of one entry of a database end."""
from __future__ import annotations

import warnings
from collections.abc import Callable


class NotApplicable(Exception):
    """The database has nothing for this check."""


def outcomes_of(checks: dict[str, Callable[[], None]]) -> dict[str, str]:
    """Runs checks. Returns for each "passed", "none" where there is nothing to check, or why it failed."""
    outcomes = {}
    for name, check in checks.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check()
            outcomes[name] = "passed"
        except NotApplicable:
            outcomes[name] = "none"
        except Exception as error:  # every kind counts as a failure
            outcomes[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
    return outcomes
