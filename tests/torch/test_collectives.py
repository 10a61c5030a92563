# SPDX-License-Identifier: Apache-2.0
"""Runs the functions of collectives.py and operations.py on 2 and 3 ranks."""
import pytest

from launcher import run_ranks

COLLECTIVES = ["all_reduce", "averages_and_booleans", "broadcast", "reduce", "gathers", "scatters", "all_to_all",
               "messages"]
OPERATIONS = ["bitwise_reductions", "premultiplied_sums", "premultiplied_sums_of_other_types", "refused_reductions",
              "large_messages", "dependent_operations", "coalesced_calls", "any_source", "tags",
              "messages_overtake_collectives", "callbacks_of_two_streams", "futures", "waiting_callbacks",
              "inference_tensors", "complex_tensors", "sparse_sums", "sequence_numbers", "statistics",
              "tensors_of_shared_memory", "exceptions_keep_groups_usable", "results_arrive_in_call_order",
              "futures_of_other_streams", "bad_arguments"]


# All functions of a module share one launch, because starting Python on every rank takes longer than most of the
# functions.
@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(ranks: int) -> None:
    run_ranks(ranks, "collectives:" + ",".join(COLLECTIVES), seconds=300)


@pytest.mark.parametrize("ranks", [2, 3])
def test_operations(ranks: int) -> None:
    run_ranks(ranks, "operations:" + ",".join(OPERATIONS), seconds=300)


def test_collectives_with_the_allocator() -> None:
    run_ranks(2, "collectives:" + ",".join(COLLECTIVES), seconds=300, HCCL_TORCH_ALLOCATOR="1")
