#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Side by side: hccl, Open MPI at its defaults and at its best settings, and the memory floor, taking turns in one run.

Prints markdown on standard output and progress on standard error. How it measures: docs/performance.md. Expect a
quarter of an hour; 3 minutes with --quick, 20 minutes with --collective all (on two idle cores)."""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
from drivers import ALGORITHMS, BusyLoop, DriverError, Field, end_with_parent, our_environment
from measure import Cell, Race, estimate, iterations_for
from plot import write_plot
from report import all_facts, show_facts, show_section, show_summary
from page import require_section, shown_arguments, write_section  # found through report.py

SIZES = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20]
BUSY_SIZES = SIZES[:6]
LATENCY_SIZES = SIZES[:1]
OTHER_SIZES = [1 << 10, 32 << 10, 256 << 10, 4 << 20, 16 << 20]  # of --collective all, but for all_reduce
SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
VERIFY_UP_TO = 2 << 20


def parse_size(text):
    unit = SUFFIXES.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdigit() or int(digits) * unit % 4 != 0 or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text}: expected a multiple of 4 such as 8, 32K or 16M")
    return int(digits) * unit


def parse_list(convert):
    return lambda text: [convert(part) for part in text.split(",")]


def parse_collectives(text):
    names = list(ALGORITHMS) if text == "all" else text.split(",")
    for name in names:
        if name not in ALGORITHMS:
            raise argparse.ArgumentTypeError(f"{name}: expected all or some of {','.join(ALGORITHMS)}")
    return names


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--ranks", type=parse_list(int), default=[8, 2], metavar="N,N", help="numbers of ranks (8,2)")
    parser.add_argument("--collective", type=parse_collectives, default=["all_reduce"], metavar="NAME,NAME",
                        help="all, or some of " + ", ".join(ALGORITHMS) + " (all_reduce). all: fewer rounds, and for "
                        "all but all_reduce shorter cells and sizes 1K,32K,256K,4M,16M")
    parser.add_argument("--sizes", type=parse_list(parse_size), metavar="SIZE,SIZE", help="8,64,512,4K,...,16M")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; 2 with --quick, 3 with all)")
    parser.add_argument("--seconds", type=float, help="least duration of a cell (0.3; 0.1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter cells")
    parser.add_argument("--in-place", action="store_true", help="send and receive buffer are one")
    parser.add_argument("--queued", action="store_true", help="only calls queued back to back")
    parser.add_argument("--busy", action="store_true", help="only all_reduce beside a busy loop pinned to one core")
    parser.add_argument("--latency", action="store_true", help="only all_reduce with a synchronise after each call")
    parser.add_argument("--json", metavar="FILE", help="write every sample, in nanoseconds")
    parser.add_argument("--write", metavar="FILE", help="put the results into their section of this document, and a plot beside it (FILE.md: FILE.svg)")
    parser.add_argument("--plot", metavar="FILE", help="draw the queued calls' ratios: an SVG")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal that must be reached is missed")
    options = parser.parse_args()
    options.shown = shown_arguments(sys.argv[1:], {"--build", "--json", "--plot", "--write"})
    options.survey = len(options.collective) == len(ALGORITHMS)
    options.rounds = options.rounds or (2 if options.quick else 3 if options.survey else 5)
    if options.write and not options.plot:
        options.plot = os.path.splitext(options.write)[0] + ".svg"
    if options.rounds < 1 or seconds_for(options, "all_reduce") <= 0 or min(options.ranks) < 1 or max(options.ranks) > 64:
        parser.error("rounds and seconds must be positive, ranks between 1 and 64")
    for path in filter(None, (options.json, options.plot)):
        if not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"{path}: no such folder")
    return options


def seconds_for(options, collective):
    """The least duration of a cell."""
    brief = options.quick or (options.survey and collective != "all_reduce")
    return options.seconds or (0.1 if brief else 0.3)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def least_size(collective, ranks):
    """Below this, collectives of parts have no element for each rank."""
    return 4 * ranks if collective in ("all_gather", "reduce_scatter", "alltoall") else 4


def sizes_for(options, collective, ranks):
    """Of calls queued back to back."""
    if collective == "barrier":
        return [0]
    default = OTHER_SIZES if options.survey and collective != "all_reduce" else SIZES
    return [size for size in options.sizes or default if size >= least_size(collective, ranks)]


def is_in_place(options, collective):
    """MPI_Bcast has one buffer, so broadcast is compared in place."""
    return options.in_place or collective == "broadcast"


class PerfProgram:
    """hccl-perf, run once a round over all sizes: the users' program must tell the same story as the driver."""

    def __init__(self, options, collective, ranks):
        self.program = f"{options.build}/bin/hccl-perf"
        self.sizes = sizes_for(options, collective, ranks)
        self.arguments = [collective, "-g", str(ranks), "-w", "5", "-c", "0", "-a", "3", "--standalone", "-f", "8",
                          "-b", str(self.sizes[0]), "-e", str(self.sizes[-1]), "--min-time", str(seconds_for(options, collective) / 3),
                          "--repeats", "1"]
        # One sweep covers sizes that grow by a factor of 8, as the default ones do.
        steps = all(b == 8 * a for a, b in zip(self.sizes, self.sizes[1:]))
        self.usable = os.access(self.program, os.X_OK) and steps and collective != "barrier"
        self.place = "in_place" if is_in_place(options, collective) else "out_of_place"

    def round(self, cells):
        if not self.usable:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "perf.json")
            done = subprocess.run([self.program, *self.arguments, "--json", path], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=our_environment(), preexec_fn=end_with_parent,
                                  timeout=300, check=False)
            if done.returncode != 0:
                raise DriverError(f"hccl-perf: {done.stderr.decode(errors='replace').strip()}")
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
        for row in rows:
            for cell in cells:
                if cell.size == row["size_bytes"]:
                    cell.perf.append(row[self.place]["time_ns"])


def race_queued(options, collective, ranks):
    in_place = is_in_place(options, collective)
    with Field(f"{options.build}/bin", ranks, collective, collective != "barrier") as field:
        races = []
        for size in sizes_for(options, collective, ranks):
            progress(f"{collective}, {ranks} ranks, {size} bytes: choosing settings")
            races.append(Race(field, collective, size, seconds_for(options, collective), in_place=in_place))
            if 0 < size <= VERIFY_UP_TO:
                races[-1].verify()
        perf = PerfProgram(options, collective, ranks)
        cells = [race.cell for race in races]
        for number in range(options.rounds):
            progress(f"{collective}, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
            perf.round(cells)
        return cells


def race_latency(options, ranks):
    with Field(f"{options.build}/bin", ranks, "all_reduce", with_floor=False) as field:
        progress(f"latency, {ranks} ranks: choosing settings")
        races = [Race(field, "all_reduce", size, seconds_for(options, "all_reduce"), latency=True)
                 for size in options.sizes or LATENCY_SIZES]
        for number in range(options.rounds):
            progress(f"latency, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
        return [race.cell for race in races]


def race_busy(options, ranks):
    """With a core for each rank, Open MPI spins and gets nowhere beside the loop: there we compare with ourselves."""
    loop = BusyLoop(max(os.sched_getaffinity(0)))
    with contextlib.closing(loop), Field(f"{options.build}/bin", ranks, "all_reduce", with_floor=False) as field:
        sizes = options.sizes or BUSY_SIZES
        if ranks <= len(os.sched_getaffinity(0)):
            return undisturbed_rounds(options, field, loop, sizes)
        loop.run()
        races = []
        for size in sizes:
            progress(f"busy, {ranks} ranks, {size} bytes: choosing settings")
            races.append(Race(field, "all_reduce", size, seconds_for(options, "all_reduce"), with_default=False))
        for number in range(options.rounds):
            progress(f"busy, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
        return [race.cell for race in races]


def undisturbed_rounds(options, field, loop, sizes):
    cells = []
    seconds = seconds_for(options, "all_reduce")
    for size in sizes:
        cells.append(Cell("all_reduce", size, field.ranks))
        each = estimate(field.ours, "all_reduce", size, seconds / 5)
        cells[-1].iterations = iterations_for(seconds, [each])
    for number in range(options.rounds):
        progress(f"busy, {field.ranks} ranks: round {number + 1} of {options.rounds}")
        for cell in cells:
            count = cell.iterations
            cell.quiet.append(field.ours.run("all_reduce", cell.size, count, warmup=count // 20))
            loop.run()
            cell.ours.append(field.ours.run("all_reduce", cell.size, count, warmup=count // 20))
            loop.pause()
    return cells


def run_sections(options):
    everything = not (options.queued or options.busy or options.latency)
    for collective in options.collective:
        for ranks in options.ranks:
            if everything or options.queued:
                yield "queued", race_queued(options, collective, ranks)
    if "all_reduce" in options.collective and not options.in_place:
        for ranks in options.ranks:
            if everything or options.latency:
                yield "latency", race_latency(options, ranks)
            if everything or options.busy:
                yield "busy", race_busy(options, ranks)


def require_drivers(options):
    for program in ("hccl_collectives", "memory_floor", "mpi_collectives"):
        path = f"{options.build}/bin/{program}"
        if not os.access(path, os.X_OK):
            reason = " (was libopenmpi-dev there when it was configured?)" if program == "mpi_collectives" else ""
            sys.exit(f"bench: {path} is missing{reason}. Type: cmake --build {options.build} --target hccl_peers")


def stop(number, _):
    sys.exit(128 + number)


def main():
    options = parse_arguments()
    require_drivers(options)
    if options.write:
        require_section(options.write, "bench")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    facts = all_facts()
    if facts["load"] > facts["cores"] / 4:
        progress(f"the machine is not idle (load average {facts['load']:.1f}): expect noise")
    start = time.monotonic()
    sections = []
    try:
        for section, cells in run_sections(options):
            progress("")
            sections.append((section, cells))
            print(show_section(section, cells) + "\n", flush=True)
    except DriverError as error:
        progress("")
        sys.exit(f"bench: {error}")
    command = " ".join(["./dev bench", *options.shown])
    summary, reached = show_summary(sections, facts["cores"])
    closing = [show_facts(facts, command, time.monotonic() - start), summary]
    print("\n\n".join(closing))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"command": command, "machine": facts,
                       "sections": [{"section": name, "cells": [cell.as_json() for cell in cells]}
                                    for name, cells in sections]}, file, indent=1)
    if options.plot:
        write_plot(options.plot, sections)
    if options.write:
        image = os.path.relpath(options.plot, os.path.dirname(options.write) or ".")
        closing.append(f"![hccl's time relative to Open MPI's best setting and to the memory floor]({image})")
        write_section(options.write, "bench",
                      closing + [show_section(section, cells) for section, cells in sections])
    return 0 if reached or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
