# SPDX-License-Identifier: Apache-2.0
"""The functions of collectives.py and operations.py, on 2 and 3 ranks."""
import pytest

from launcher import run_ranks

COLLECTIVES = ["all_reduce", "averages_and_truth_values", "broadcast", "reduce", "gathers", "scatters", "all_to_all",
               "messages"]
OPERATIONS = ["bitwise_reductions", "premultiplied_sums", "refused_reductions", "large_messages", "coalesced_calls",
              "any_source", "messages_pass_collectives", "futures", "callbacks_that_wait", "inference_tensors",
              "complex_tensors", "sequence_numbers", "statistics", "tensors_of_shared_memory",
              "bad_arguments"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("function", COLLECTIVES)
def test_collective(function: str, ranks: int) -> None:
    run_ranks(ranks, f"collectives:{function}")


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("function", OPERATIONS)
def test_operation(function: str, ranks: int) -> None:
    run_ranks(ranks, f"operations:{function}")
