#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares hccl with Open MPI, Intel MPI and MPICH on new buffers: all-reduces that use many pairs of buffers in
turn, and all-reduces whose buffers are allocated just before the call and freed after it. Every sample comes from a new job.

Prints Markdown to standard output and progress to standard error. docs/performance.md describes what is measured. On
two idle cores, a run takes about eleven minutes."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, parse_list, progress, require_built, warn_of_load
from drivers import TUNED, end_with_parent, mpi_environment, our_environment
from measure import rotated
from newest import PEERS
from report import all_facts, show_size
from page import read_field, require_section, show_run, shown_arguments, table, write_section  # found through report.py

KIB, MIB = 1 << 10, 1 << 20
SHOWN = [1, 2, 3, 6, 12, 25]  # rounds
WALKS = [(64, 64 * KIB, 25), (64, 1 * MIB, 25), (8, 32 * MIB, 12)]  # pairs, bytes of each buffer, rounds
REALLOCATED = [(16, 64 * KIB, 4), (16, 1 * MIB, 4), (4, 32 * MIB, 4)]
# The maximum ratio of hccl's time to the fastest peer's, by size and round.
MUST = {(1 * MIB, 1): 1.0, (1 * MIB, 2): 0.6, (32 * MIB, 1): 1.0, (32 * MIB, 2): 0.5}
WARM_MUST = 1.2  # maximum time of a round after the second, relative to the median of such rounds
MEMORY_MUST = 1.1  # maximum memory of hccl's processes, relative to the buffers, if the buffers take at least MEMORY_LEAST
MEMORY_LEAST = 1024 * MIB


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the programs (build/release)")
    parser.add_argument("--ranks", type=parse_list(int), default=[8, 2], metavar="N,N", help="numbers of ranks (8,2)")
    parser.add_argument("--rounds", type=int, default=3, help="jobs per side; the sides take turns (3)")
    parser.add_argument("--peers", choices=["pypi", "debian"], default="pypi", help="as for ./dev bench")
    parser.add_argument("--json", metavar="FILE", help="write every sample")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    options.compared, options.left_out = {}, {}  # ordered sets: the peers measured, and the reasons why others were not
    options.shown = shown_arguments(sys.argv[1:], {"--build", "--json", "--write"})
    if options.rounds < 1 or min(options.ranks) < 1 or max(options.ranks) > 64:
        parser.error("rounds must be positive, ranks between 1 and 64")
    return options


class Case:
    """One kind of walk with one number of ranks. `samples` maps a side's label to one list per job:
    the microseconds per call of each round. `memory` maps a side's label to one pair per job: the
    MiB of all processes and of their page tables, after the last round."""

    def __init__(self, ranks, pairs, size, rounds, reallocates):
        self.ranks, self.pairs, self.size, self.rounds, self.reallocates = ranks, pairs, size, rounds, reallocates
        self.samples = {}
        self.memory = {}

    @property
    def words(self):
        return [str(self.pairs), str(self.size), str(self.rounds)] + (["--reallocate"] if self.reallocates else [])

    @property
    def buffer_bytes(self):
        """Returns the total size, over all ranks, of the buffers that exist at the same time."""
        return 2 * self.ranks * self.size * (1 if self.reallocates else self.pairs)

    @property
    def columns(self):
        return [number for number in SHOWN if number <= self.rounds]

    def median(self, label, number):
        return statistics.median(times[number - 1] for times in self.samples[label])

    def best(self, number):
        return min((label for label in self.samples if not label.startswith("hccl")), key=lambda label: self.median(label, number))

    def ratio(self, label, number):
        """Returns a side's time relative to the fastest peer's: the median of the ratios over the jobs."""
        peers = self.samples[self.best(number)]
        return statistics.median(a[number - 1] / b[number - 1] for a, b in zip(self.samples[label], peers))

    def memory_median(self, label, index):
        return statistics.median(pair[index] for pair in self.memory[label])

    def memory_ratio(self, label):
        """Returns the memory of all processes and their page tables, relative to that of the buffers."""
        return statistics.median(sum(pair) for pair in self.memory[label]) * MIB / self.buffer_bytes

    def goals(self):
        """Returns [(text, whether the goal is reached)]. The goals bound hccl's times on device
        memory, and its memory use with buffers in device memory and in host memory."""
        what = f"{self.pairs} pairs of {show_size(self.size)}, {self.ranks} ranks"
        verdicts = []
        for number in self.columns if not self.reallocates else []:
            if must := MUST.get((self.size, number)):
                ratio = self.ratio("hccl", number)
                verdicts.append((f"{what}, round {number}: {ratio:.2f} times the fastest peer, must be at most {must}",
                                 ratio <= must))
            elif number > 2 and self.size >= MIB:
                warm = statistics.median(times[number - 1] / statistics.median(times[2:]) for times in self.samples["hccl"])
                verdicts.append((f"{what}, round {number}: {warm:.2f} times the median of rounds 3 to {self.rounds}, "
                                 f"must be at most {WARM_MUST}", warm <= WARM_MUST))
        for label in self.memory if self.buffer_bytes >= MEMORY_LEAST else []:
            if label.startswith("hccl"):
                ratio = self.memory_ratio(label)
                verdicts.append((f"{what}, memory of {label}: {ratio:.2f} times that of the buffers, must be at most {MEMORY_MUST}",
                                 ratio <= MEMORY_MUST))
        return verdicts

    def show(self):
        kind = "allocated for each call" if self.reallocates else "used in turn"
        rows = [[label, *(f"{self.median(label, number):,.0f}" for number in self.columns)] for label in self.samples]
        rows += [[f"{label} / fastest peer", *(f"{self.ratio(label, number):.2f}" for number in self.columns)]
                 for label in self.samples if label.startswith("hccl")]
        parts = [f"### {self.pairs} pairs of {show_size(self.size)}, {kind}, {self.ranks} ranks",
                 table(["us per call in round", *map(str, self.columns)], rows)]
        if self.memory:
            rows = [[label, f"{self.memory_median(label, 0):,.0f}", f"{self.memory_median(label, 1):,.0f}",
                     f"{self.memory_ratio(label):.2f}"] for label in self.memory]
            parts.append(table(["memory after the last round", "MiB of all processes", "MiB of page tables", "sum / buffers"], rows))
        return "\n\n".join(parts)

    def as_json(self):
        return {"ranks": self.ranks, "pairs": self.pairs, "bytes": self.size, "reallocates": self.reallocates,
                "us_per_call": self.samples, "memory_mib": self.memory}


def sides_of(options, ranks):
    """Returns {label: (command without the walk's arguments, environment)}."""
    ours = [f"{options.build}/bin/hccl_walk", "-g", str(ranks)]
    more = ["--oversubscribe"] if ranks > len(os.sched_getaffinity(0)) else []
    mpi = ["mpirun", *more, "-np", str(ranks), f"{options.build}/bin/mpi_walk"]
    sides = {"hccl": (ours, our_environment()), "hccl, host memory": ([*ours, "--host-memory"], our_environment()),
             "Open MPI 4, default": (mpi, mpi_environment()), "Open MPI 4, tuned": (mpi, {**mpi_environment(), **TUNED})}
    binaries = f"{options.build}/bin"
    for peer in PEERS if options.peers == "pypi" else []:
        if reason := peer.why_not(binaries, "walk", ranks, "all_reduce"):
            options.left_out[reason] = None
            continue
        options.compared[peer.packages[0].replace("==", " ")] = None
        argv = peer.argv(binaries, "walk", ranks)
        sides |= {f"{peer.title}, {setting.label}": (argv, peer.environment(setting)) for setting in peer.usable_settings(ranks)}
    return sides


def run_job(label, argv, environment):
    """Returns two lists: each round's microseconds per call, and the MiB of all processes and of
    their page tables. The second list is empty if the walk reallocates."""
    done = subprocess.run(argv, check=False, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent, timeout=600)
    if done.returncode != 0:
        sys.exit(f"bench: {label}: exit status {done.returncode}: {done.stderr.strip()}")
    times, memory = (done.stdout.split("\n") + [""])[:2]
    return [float(word) for word in times.split()], [float(word) for word in memory.split()]


def cases_of(options):
    """Returns the cases whose buffers take at most half of the available memory."""
    available = int(read_field("/proc/meminfo", "MemAvailable").split()[0]) * KIB
    cases = [Case(ranks, *walk, reallocates) for ranks in options.ranks
             for reallocates, walks in ((False, WALKS), (True, REALLOCATED)) for walk in walks]
    for case in cases:
        if case.buffer_bytes > available / 2:
            progress(f"{case.pairs} pairs of {show_size(case.size)}, {case.ranks} ranks: left out for lack of memory")
    return [case for case in cases if case.buffer_bytes <= available / 2]


def main():
    options = parse_arguments()
    require_built(options.build, ("hccl_walk", "mpi_walk"), "./dev bench --cold")
    if options.write:
        require_section(options.write, "cold")
    end_on_signals()
    facts = all_facts()
    warn_of_load(facts)
    start = time.monotonic()
    cases = cases_of(options)
    for case in cases:
        sides = sides_of(options, case.ranks)
        case.samples = {label: [] for label in sides}
        for number in range(options.rounds):
            progress(f"{case.pairs} pairs of {show_size(case.size)}, {case.ranks} ranks: job {number + 1} of {options.rounds}")
            for label in rotated(list(sides), number):
                argv, environment = sides[label]
                times, memory = run_job(label, [*argv, *case.words], environment)
                case.samples[label].append(times)
                if memory:
                    case.memory.setdefault(label, []).append(memory)
    progress("")
    verdicts = [verdict for case in cases for verdict in case.goals()]
    command = " ".join(["./dev bench --cold", *options.shown])
    left_out = f"; left out: {', '.join(options.left_out)}" if options.left_out else ""
    parts = [show_run(facts, command, time.monotonic() - start, f"{', '.join([facts['mpi'], *options.compared])}{left_out}; "),
             "\n".join(f"- {'reached' if reached else 'MISSED'}: {text}" for text, reached in verdicts),
             *(case.show() for case in cases)]
    print("\n\n".join(parts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"command": command, "machine": facts, "cases": [case.as_json() for case in cases]}, file, indent=1)
    if options.write:
        write_section(options.write, "cold", parts)
    return 0 if all(reached for _, reached in verdicts) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
