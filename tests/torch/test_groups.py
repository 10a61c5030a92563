# SPDX-License-Identifier: Apache-2.0
"""Runs the functions of groups.py."""
from pathlib import Path

import pytest

from launcher import run_ranks


def test_subgroups() -> None:
    run_ranks(4, "groups:subgroups")


@pytest.mark.parametrize("function", ["two_groups_at_once", "groups_leak_nothing", "reinitialised",
                                      "forks_with_shared_memory", "forks_during_allocations",
                                      "child_exits_after_parent_receives", "destroyed_with_pending_receives",
                                      "destroyed_with_a_pending_message"])
def test_two_ranks(function: str) -> None:
    run_ranks(2, f"groups:{function}")


def test_forked_child_gets_an_error() -> None:
    output = run_ranks(2, "groups:forks")
    assert output.count("forked") >= 2, output


def test_allocator(tmp_path: Path) -> None:
    run_ranks(2, "groups:allocator_with_other_features", str(tmp_path))
