# SPDX-License-Identifier: Apache-2.0
"""The functions of collectives.py, on 2 and 3 ranks."""
import pytest

from launcher import run_ranks

FUNCTIONS = ["all_reduce", "averages_and_truth_values", "broadcast", "reduce", "gathers", "scatters", "all_to_all",
             "messages", "data_parallel"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_collective(function: str, ranks: int) -> None:
    run_ranks(ranks, f"collectives:{function}")
