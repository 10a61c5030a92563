# SPDX-License-Identifier: Apache-2.0
"""Runs the functions of messages.py."""
import pytest

from launcher import run_ranks

ORDER = ["directed_behind_any", "any_behind_directed", "unmatched_messages_stay_queued", "tags_beside_any", "tagged_beside_pending",
         "mixed_traffic"]
PASSING = ["halo_exchange", "received_twice", "sent_during_its_broadcast", "other_calls_overtake_a_waiting_call",
           "disjoint_from_a_collective", "behind_a_collective"]
SELF = ["to_itself", "to_itself_in_batches", "self_receive_without_send_times_out"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("function", ORDER)
def test_message_order(function: str, ranks: int) -> None:
    run_ranks(ranks, f"messages:{function}")


@pytest.mark.parametrize("function", ["directed_waits_for_its_own_source", "parts_of_one_tensor"])
def test_message_order_on_three_ranks(function: str) -> None:
    run_ranks(3, f"messages:{function}")


@pytest.mark.parametrize("function", PASSING)
def test_no_call_waits_for_a_message(function: str) -> None:
    run_ranks(2, f"messages:{function}", TEST_TIMEOUT="20")


@pytest.mark.parametrize("function", [*SELF, "tags_in_batches", "results_at_once", "inaccessible_memory",
                                      "memory_protected_later", "gaps_are_untouched"])
def test_message_functions_on_two_ranks(function: str) -> None:
    run_ranks(2, f"messages:{function}")


def test_messages_to_itself() -> None:
    run_ranks(1, "messages:to_itself,self_receive_without_send_times_out")
