# SPDX-License-Identifier: Apache-2.0
"""Runs the faulty samples in PyTorch's database of operations. The device must reject them with the
errors that the database expects."""
from __future__ import annotations

import re
from functools import partial

from compare import Difference
from operations import OPERATIONS
from outcomes import NotApplicable, outcomes_of
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo


def names() -> list[str]:
    return [name for name, info in OPERATIONS.items() if info.error_inputs_func is not None]


def _cpu_refuses(info: OpInfo, number: int) -> bool:
    sample = list(info.error_inputs("cpu"))[number].sample_input
    try:
        info.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return True
    return False


def check(info: OpInfo, error: ErrorInput, number: int) -> None:
    sample = error.sample_input
    try:
        info.op(sample.input, *sample.args, **sample.kwargs)
        if not error.error_regex and not _cpu_refuses(info, number):
            raise NotApplicable
    except NotApplicable:
        raise
    except error.error_type as raised:
        if re.search(error.error_regex, str(raised)) is None:
            raise Difference(f"the text is {str(raised).splitlines()[0]!r}, not {error.error_regex!r}") from raised
        return
    raise Difference(f"nothing was raised, but the database expects {error.error_regex!r}")


def run(name: str) -> dict[str, str]:
    """Returns the outcomes of an operation's faulty samples, by number."""
    info = OPERATIONS[name]
    return outcomes_of({f"error {number}": partial(check, info, one, number)
                        for number, one in enumerate(info.error_inputs("hpu"))})
