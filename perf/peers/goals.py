# SPDX-License-Identifier: Apache-2.0
"""The project's goals in numbers: which ratio of which cell must reach what, and what it aims for.

Stated for two cores. A goal is (what the ratio is to, must reach, aim); None: no such bound."""

KIB, MIB = 1 << 10, 1 << 20


def all_reduce_goals(ranks, size):
    goals = []
    if ranks == 8:
        if size <= 4 * KIB:
            goals.append(("best", 1.0, 0.7))
        elif size == 32 * KIB:
            goals.append(("best", 0.4, 0.3))
        elif 256 * KIB <= size <= 2 * MIB:
            goals.append(("best", 0.3, 0.2))
        elif size == 16 * MIB:
            goals.append(("best", 0.45, None))
        if size == 8:
            goals.append(("default", 0.6, None))
        elif size == 32 * KIB:
            goals.append(("default", 0.12, None))
        elif size == 256 * KIB:
            goals.append(("default", 0.2, None))
        elif size >= 2 * MIB:
            goals += [("default", 0.3, None), ("floor", None, 1.15)]
    if ranks == 2:
        if size == 8:
            goals.append(("best", 4.0, 1.5))
        elif 32 * KIB <= size <= 2 * MIB:
            goals.append(("best", 0.5, 0.35))
        if size >= 2 * MIB:
            goals.append(("floor", 1.25, 1.1))
    return goals


def other_goals(size):
    goals = []
    if size >= KIB:
        goals.append(("best", 1.0, None))
    if size >= 4 * MIB:
        goals.append(("floor", 1.3, 1.15))
    return goals


def busy_goals(ranks, size):
    if ranks == 2:
        return [("undisturbed", 3.0, 2.0)]
    if ranks == 8 and size <= 4 * KIB:
        return [("best", 1.0, 0.7)]
    if ranks == 8 and 32 * KIB <= size <= 256 * KIB:
        return [("best", 0.5, None)]
    return []


def latency_goals(ranks, size):
    bounds = {2: (5.0, 2.0), 8: (1.0, 0.8)}
    return [("best", *bounds[ranks])] if size == 8 and ranks in bounds else []


def nodes_goals(size):
    """The floor: the same bytes through a raw socket."""
    return [("best", 0.9, 0.7), ("floor", 1.15, 1.05)] if size >= 16 * MIB else []


def nodes_latency_goals(size):
    """The floor: a raw ping-pong, there and back."""
    return [("floor", 1.5, 1.2)] if size == 8 else []


def goals_of(section, cell):
    if section == "nodes":
        return nodes_goals(cell.size)
    if section == "nodes latency":
        return nodes_latency_goals(cell.size)
    if section == "busy":
        return busy_goals(cell.ranks, cell.size)
    if section == "latency":
        return latency_goals(cell.ranks, cell.size)
    if cell.collective == "all_reduce":
        return all_reduce_goals(cell.ranks, cell.size)
    return other_goals(cell.size) if cell.collective != "barrier" else []
