#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares hccl with Open MPI, Intel MPI, MPICH and oneCCL, at their defaults and at their best settings, and with the
memory floor. All take turns in one run.

Prints Markdown to standard output and progress to standard error. docs/performance.md describes the method. On two idle
cores a run takes about 15 minutes, 3 with --quick, and 30 with --collective all."""
import argparse
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, parse_list, parse_size, progress, require_built, warn_of_load
from drivers import ALGORITHMS, BusyLoop, DriverError
from measure import Cell, Race, estimate, iterations_for
from bench_plot import write_plot
from newest import PEERS
from one_node import OneNode, PerfProgram
from report import all_facts, show_facts, show_section, show_summary, write_samples
from page import require_section, shown_arguments, write_section  # found through report.py

SIZES = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20]
BUSY_SIZES = SIZES[:6]
LATENCY_SIZES = SIZES[:1]
OTHER_SIZES = [1 << 10, 32 << 10, 256 << 10, 4 << 20, 16 << 20]  # for --collective all, except all_reduce
VERIFY_UP_TO = 2 << 20


def parse_collectives(text):
    names = list(ALGORITHMS) if text == "all" else text.split(",")
    for name in names:
        if name not in ALGORITHMS:
            raise argparse.ArgumentTypeError(f"{name}: expected all, or names from {','.join(ALGORITHMS)}")
    return names


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--ranks", type=parse_list(int), default=[8, 2], metavar="N,N", help="numbers of ranks (8,2)")
    parser.add_argument("--collective", type=parse_collectives, default=["all_reduce"], metavar="NAME,NAME",
                        help="all, or some of " + ", ".join(ALGORITHMS) + " (all_reduce). \"all\" uses fewer rounds and, except "
                        "for all_reduce, shorter cells and the sizes 1K,32K,256K,4M,16M")
    parser.add_argument("--sizes", type=parse_list(parse_size), metavar="SIZE,SIZE", help="buffer sizes (8,64,512,4K,...,16M)")
    parser.add_argument("--rounds", type=int,
                        help="interleaved rounds (5; 3 with --collective all; 2 with --quick)")
    parser.add_argument("--seconds", type=float, help="minimum seconds per cell (0.3; 0.1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter cells")
    parser.add_argument("--in-place", action="store_true", help="use one buffer for sending and receiving")
    parser.add_argument("--queued", action="store_true", help="measure only calls queued back to back")
    parser.add_argument("--host", action="store_true",
                        help="measure only calls queued back to back on ordinary host memory, which the peers use too")
    parser.add_argument("--busy", action="store_true", help="measure only all_reduce, alongside a busy loop pinned to one core")
    parser.add_argument("--latency", action="store_true", help="measure only all_reduce, waiting for each call")
    parser.add_argument("--peers", choices=["pypi", "debian"], default="pypi",
                        help="pypi: Debian's Open MPI, and the newest Open MPI, Intel MPI, MPICH and oneCCL from PyPI; debian: "
                        "only Debian's Open MPI, for use without a network")
    parser.add_argument("--json", metavar="FILE", help="write every sample, in nanoseconds")
    parser.add_argument("--write", metavar="FILE",
                        help="write the results to their section of FILE, and a plot next to it (FILE.md: FILE.svg)")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios of the queued calls as an SVG")
    parser.add_argument("--check", action="store_true", help="exit 1 if a required goal is missed")
    options = parser.parse_args()
    options.shown = shown_arguments(sys.argv[1:], {"--build", "--json", "--plot", "--write"})
    options.compared, options.left_out = {}, {}  # ordered sets: the peers measured, and the reasons why others were not
    options.survey = len(options.collective) == len(ALGORITHMS)
    options.rounds = options.rounds or (2 if options.quick else 3 if options.survey else 5)
    if options.write and not options.plot and not options.host:
        options.plot = os.path.splitext(options.write)[0] + ".svg"
    ranks_fit = min(options.ranks) >= 1 and max(options.ranks) <= 64
    if options.rounds < 1 or seconds_for(options, "all_reduce") <= 0 or not ranks_fit:
        parser.error("rounds and seconds must be positive, ranks between 1 and 64")
    for path in filter(None, (options.json, options.plot)):
        if not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"{path}: no such folder")
    return options


def page_section(options):
    """Returns the name of the section of docs/performance.md that holds the results."""
    return "host" if options.host else "bench"


def seconds_for(options, collective):
    """Returns the minimum duration of each measurement of a cell, in seconds."""
    brief = options.quick or (options.survey and collective != "all_reduce")
    return options.seconds or (0.1 if brief else 0.3)


def least_size(collective, ranks):
    """Returns the smallest size in bytes: one float, or one for each rank if the buffer has a part for each rank."""
    return 4 * ranks if collective in ("all_gather", "reduce_scatter", "alltoall") else 4


def sizes_for(options, section, collective, ranks):
    if collective == "barrier":
        return [0]
    default = {"queued": SIZES, "host": SIZES, "latency": LATENCY_SIZES, "busy": BUSY_SIZES}[section]
    if options.survey and collective != "all_reduce":
        default = OTHER_SIZES
    return [size for size in options.sizes or default if size >= least_size(collective, ranks)]


def one_node(options, ranks, collective, **more):
    field = OneNode(f"{options.build}/bin", ranks, collective, newest=PEERS if options.peers == "pypi" else [], **more)
    options.compared.update({" ".join(side.driver.title.split()): None for side in field.peers})
    options.left_out.update(dict.fromkeys(field.left_out))
    return field


def race_queued(options, section, collective, ranks):
    """Measures the sides in turn on device memory, or in the section "host" on ordinary host memory."""
    in_place = options.in_place or collective == "broadcast"  # MPI_Bcast has only one buffer
    on_host = section == "host"
    seconds = seconds_for(options, collective)
    sizes = sizes_for(options, section, collective, ranks)
    with_floor = not on_host and collective != "barrier"
    with one_node(options, ranks, collective, with_floor=with_floor, in_host_memory=on_host) as field:
        races = []
        for size in sizes:
            progress(f"{section}, {collective}, {ranks} ranks, {size} bytes: choosing settings")
            races.append(Race(field, collective, size, seconds, in_place=in_place))
            if 0 < size <= VERIFY_UP_TO:
                races[-1].verify()
        perf = PerfProgram(f"{options.build}/bin", collective, ranks, sizes, seconds / 3, in_place)
        cells = [race.cell for race in races]
        for number in range(options.rounds):
            progress(f"{section}, {collective}, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
            if not on_host:
                perf.round(cells)
        return cells


def race_latency(options, section, collective, ranks):
    with one_node(options, ranks, collective, with_floor=False) as field:
        progress(f"latency, {ranks} ranks: choosing settings")
        races = [Race(field, collective, size, seconds_for(options, collective), latency=True)
                 for size in sizes_for(options, section, collective, ranks)]
        for number in range(options.rounds):
            progress(f"latency, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
        return [race.cell for race in races]


def race_busy(options, section, collective, ranks):
    """Measures the sides in turn while a busy loop runs. If each rank has a core, Open MPI spins and makes no progress
    alongside the loop. In that case, compares hccl with its own time without the loop."""
    loop = BusyLoop(max(os.sched_getaffinity(0)))
    seconds = seconds_for(options, collective)
    with contextlib.closing(loop), one_node(options, ranks, collective, with_floor=False) as field:
        sizes = sizes_for(options, section, collective, ranks)
        if ranks <= len(os.sched_getaffinity(0)):
            return undisturbed_rounds(field, loop, collective, sizes, seconds, options.rounds)
        loop.run()
        races = []
        for size in sizes:
            progress(f"busy, {ranks} ranks, {size} bytes: choosing settings")
            races.append(Race(field, collective, size, seconds, with_default=False))
        for number in range(options.rounds):
            progress(f"busy, {ranks} ranks: round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
        return [race.cell for race in races]


def undisturbed_rounds(field, loop, collective, sizes, seconds, rounds):
    cells = []
    for size in sizes:
        cells.append(Cell(collective, size, field.ranks))
        each = estimate(field.ours, collective, size, seconds / 5)
        cells[-1].iterations = iterations_for(seconds, [each])
    for number in range(rounds):
        progress(f"busy, {field.ranks} ranks: round {number + 1} of {rounds}")
        for cell in cells:
            count = cell.iterations
            cell.quiet.append(field.ours.run(collective, cell.size, count, warmup=count // 20))
            loop.run()
            cell.ours.append(field.ours.run(collective, cell.size, count, warmup=count // 20))
            loop.pause()
    return cells


RACES = {"queued": race_queued, "host": race_queued, "latency": race_latency, "busy": race_busy}
BY_DEFAULT = ("queued", "latency", "busy")


def plan_sections(options):
    """Returns [(section, collective, ranks)] in the order in which they are run."""
    chosen = [name for name in RACES if getattr(options, name)] or BY_DEFAULT
    plan = [(section, collective, ranks) for collective in options.collective for ranks in options.ranks
            for section in ("queued", "host")]
    if "all_reduce" in options.collective and not options.in_place:
        plan += [(section, "all_reduce", ranks) for ranks in options.ranks for section in ("latency", "busy")]
    return [part for part in plan if part[0] in chosen and sizes_for(options, *part)]


def run_sections(options):
    for section, collective, ranks in plan_sections(options):
        yield section, RACES[section](options, section, collective, ranks)


def main():
    options = parse_arguments()
    command = f"cmake --build {options.build} --target hccl_peers"
    require_built(options.build, ("hccl_collectives", "memory_floor"), command)
    require_built(options.build, ("mpi_collectives",), command, " (was libopenmpi-dev installed when CMake configured the build?)")
    if options.write:
        require_section(options.write, page_section(options))
    end_on_signals()
    facts = all_facts()
    warn_of_load(facts)
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
    closing = [show_facts(facts, command, time.monotonic() - start, options.compared, options.left_out), summary]
    print("\n\n".join(closing))
    if options.json:
        write_samples(options.json, sections, command=command, machine=facts)
    if options.plot:
        write_plot(options.plot, sections)
    if options.write:
        if not options.host:
            image = os.path.relpath(options.plot, os.path.dirname(options.write) or ".")
            closing.append(f"![hccl's time relative to the fastest peer and to the memory floor]({image})")
        write_section(options.write, page_section(options),
                      closing + [show_section(section, cells) for section, cells in sections])
    return 0 if reached or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
