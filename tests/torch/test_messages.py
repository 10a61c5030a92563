# SPDX-License-Identifier: Apache-2.0
"""Tests the functions of messages.py."""
import pytest

from launcher import run_ranks

ORDER = ["directed_behind_any", "any_behind_directed", "other_messages_stay", "tags_beside_any", "tagged_beside_pending",
         "mixtures"]
PASSING = ["halo_exchange", "received_twice", "sent_while_it_is_broadcast", "others_pass_a_call_that_waits",
           "disjoint_from_a_collective", "behind_a_collective"]
SELF = ["to_itself", "to_itself_in_batches", "nothing_from_itself"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("function", ORDER)
def test_order(function: str, ranks: int) -> None:
    run_ranks(ranks, f"messages:{function}")


@pytest.mark.parametrize("function", ["directed_waits_for_its_own_source", "parts_of_one_tensor"])
def test_order_of_three(function: str) -> None:
    run_ranks(3, f"messages:{function}")


@pytest.mark.parametrize("function", PASSING)
def test_nothing_waits_for_a_message(function: str) -> None:
    run_ranks(2, f"messages:{function}", TEST_TIMEOUT="20")


@pytest.mark.parametrize("function", [*SELF, "tags_in_batches", "results_at_once", "memory_that_cannot_be_used",
                                      "memory_that_is_protected_later", "gaps_are_not_touched"])
def test_of_two(function: str) -> None:
    run_ranks(2, f"messages:{function}")


def test_a_rank_alone() -> None:
    run_ranks(1, "messages:to_itself,nothing_from_itself")
