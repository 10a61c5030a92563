# SPDX-License-Identifier: Apache-2.0
"""The project's performance goals: for each group of cells, a bound on hccl's time relative to a reference time, and an
aim, which is lower and not required.

The goals are for two cores. A goal is (denominator of the ratio, bound, aim); the bound or the aim may be None."""

KIB, MIB = 1 << 10, 1 << 20
ANY = float("inf")

# Goals by section. Those of the section "queued" are listed by collective instead. An entry is (ranks, least size,
# largest size, *goal), with sizes in bytes. None for the ranks matches any number.
GOALS = {
    "all_reduce": [(8, 0, 4 * KIB, "best", 1.0, 0.7),
                   (8, 32 * KIB, 32 * KIB, "best", 0.4, 0.3),
                   (8, 256 * KIB, 2 * MIB, "best", 0.3, 0.2),
                   (8, 16 * MIB, 16 * MIB, "best", 0.45, None),
                   (8, 8, 8, "default", 0.6, None),
                   (8, 32 * KIB, 32 * KIB, "default", 0.12, None),
                   (8, 256 * KIB, 256 * KIB, "default", 0.2, None),
                   (8, 2 * MIB, ANY, "default", 0.3, None),
                   (8, 2 * MIB, ANY, "floor", None, 1.15),
                   (2, 8, 8, "best", 4.0, 1.5),
                   (2, 32 * KIB, 2 * MIB, "best", 0.5, 0.35),
                   (2, 2 * MIB, ANY, "floor", 1.25, 1.1)],
    "barrier": [],
    # all_reduce on ordinary host memory. The goals in "others" apply to the other collectives.
    "host": [(2, 8, 8, "best", 1.3, 1.0),
             (2, 512, 512, "best", 0.9, 0.7),
             (2, 4 * KIB, 4 * KIB, "best", 1.0, 0.8),
             (2, 32 * KIB, 256 * KIB, "best", 0.85, 0.6),
             (2, 2 * MIB, ANY, "best", 0.8, 0.6),
             (8, 0, 512, "best", 0.7, 0.3),
             (8, 4 * KIB, 4 * KIB, "best", 0.9, 0.4),
             (8, 32 * KIB, 256 * KIB, "best", 0.5, 0.3),
             (8, 2 * MIB, ANY, "best", 0.6, 0.4)],
    "others": [(None, KIB, ANY, "best", 1.0, None), (None, 4 * MIB, ANY, "floor", 1.3, 1.15)],
    "busy": [(2, 0, ANY, "undisturbed", 3.0, 2.0),
             (8, 0, 4 * KIB, "best", 1.0, 0.7),
             (8, 32 * KIB, 256 * KIB, "best", 0.5, None)],
    "latency": [(2, 8, 8, "best", 5.0, 2.0), (8, 8, 8, "best", 1.0, 0.8)],
    # The floor moves the same bytes through a raw socket.
    "nodes": [(None, 16 * MIB, ANY, "best", 0.9, 0.7), (None, 16 * MIB, ANY, "floor", 1.15, 1.05)],
    # The floor is hccl with one rank on each node.
    "two_level": [(None, 0, ANY, "best", 0.6, None),
                  (8, 8, 8, "floor", 2.5, 1.5),
                  (8, 4 * KIB, 4 * KIB, "floor", 3.0, None),
                  (8, 256 * KIB, 2 * MIB, "floor", 2.0, None),
                  (8, 16 * MIB, 16 * MIB, "floor", 1.6, 1.3)],
    # The floor is a raw round trip.
    "nodes latency": [(None, 8, 8, "floor", 1.5, 1.2)],
}


def goals_of(section, cell):
    name = section if section in GOALS else cell.collective
    if section == "host" and cell.collective != "all_reduce":
        name = "others"
    return [tuple(goal) for ranks, least, largest, *goal in GOALS.get(name, GOALS["others"])
            if ranks in (None, cell.ranks) and least <= cell.size <= largest]
