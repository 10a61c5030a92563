#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the micro-benchmarks of the stream queue and, relative to copies of the same size, of the reduction kernels.

Prints Markdown to standard output. docs/performance.md describes what is measured."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from page import machine_facts, require_section, show_run, shown_arguments, table, write_section

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "bfloat16", "float", "double"]
OPERATIONS = ["sum", "prod", "min", "max", "avg"]
RANKS = (2, 8)
REGIMES = {"cache": "in cache", "memory": "past the cache"}
# (type, regime, maximum time of a kernel relative to the copy)
GOALS = [("float", "cache", 1.1), ("float", "memory", 1.1), ("bfloat16", "cache", 2.0)]
# Makes glibc's memcpy avoid `rep movsb`, which does not read the destination's cache lines first.
LOADS_AND_STORES = "glibc.cpu.x86_rep_movsb_threshold=4000000000"
STREAM_QUEUE = {
    "run_by_synchronising": "an empty command, run by the synchronising thread that queued it",
    "run_by_worker": "an empty command, run by the stream's worker while no other thread runs",
    "wait_for_event": "an empty command, then an event for which another stream waits",
    "copy_8_bytes": "a copy of 8 bytes from the host",
    "queue_one_and_synchronise": "an empty command followed by a synchronisation (the hand-off)",
}


def measure(program, repetitions, seconds, only=".", **environment):
    """Runs the program, which interleaves the repetitions of its benchmarks. Returns {label or name: nanoseconds}, where
    the time is the median over a benchmark's repetitions."""
    done = subprocess.run(
        [program, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
         f"--benchmark_min_time={seconds}", "--benchmark_enable_random_interleaving=true",
         "--benchmark_report_aggregates_only=true", f"--benchmark_filter={only}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"micro: {program}: {done.stderr.decode(errors='replace').strip()}")
    found = {}
    for row in json.loads(done.stdout)["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"micro: {row['name']}: {row['error_message']}")
        if row["aggregate_name"] == "median":
            manual = row["run_name"].endswith("/manual_time")  # the benchmark reads the clock itself
            name = row["run_name"].removesuffix("/manual_time").removesuffix("/process_time")
            found[row.get("label", name)] = row["real_time" if manual else "cpu_time"]
    return found


def medians(runs):
    """Returns {key: median of the key's values in `runs`}. All runs have the same keys."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def kernel_ratios(times):
    """Returns {(regime, ranks, type, operation): time relative to the fastest copy}."""
    ratios = {}
    for name, nanoseconds in times.items():
        what, regime, ranks, *kernel = name.split("/")
        if what == "reduce":
            copies = [each for other, each in times.items() if other.startswith(f"copy/{regime}/{ranks}/")]
            ratios[regime, int(ranks), *kernel] = nanoseconds / min(copies)
    return ratios


def against_stores(times, stores):
    """Returns kernel_ratios() of the in-cache kernels in `times`, relative to the copies in `stores`."""
    rest = {name: each for name, each in times.items() if name.startswith("reduce/cache/")}
    return kernel_ratios(rest | stores)


def show_kernels(ratios, ranks):
    rows = [[name] + [" / ".join(f"{ratios[regime, ranks, name, operation]:.2f}" for regime in REGIMES)
                      for operation in OPERATIONS] for name in TYPES]
    return f"{ranks} sources to {ranks} destinations:\n\n" + table(["type", *OPERATIONS], rows)


def show_against_stores(ratios):
    worst = max(each for (_, _, name, _), each in ratios.items() if name == "float")
    return (f"- for comparison, relative to a memcpy of loads and stores (`GLIBC_TUNABLES={LOADS_AND_STORES}`): float in "
            f"cache takes at most {worst:.2f}")


def judge(ratios):
    """Returns a list with a line for each goal, and whether all goals are met."""
    lines, met = [], True
    for name, regime, most in GOALS:
        worst = max((each, kernel) for kernel, each in ratios.items() if kernel[0] == regime and kernel[2] == name)
        reached = worst[0] <= most
        met = met and reached
        _, ranks, _, operation = worst[1]
        lines.append(f"- {name}, {REGIMES[regime]}: at most {most:g}; the slowest is {operation} of {ranks} "
                     f"sources, with {worst[0]:.2f}: {'met' if reached else 'MISSED'}")
    return lines, met


def show_copies(times):
    shown = []
    for ranks in RANKS:
        for regime, title in REGIMES.items():
            copies = {name.split("/")[3]: each for name, each in times.items()
                      if name.startswith(f"copy/{regime}/{ranks}/")}
            best = min(copies, key=copies.get)
            shown.append(f"{best}, {ranks} to {ranks} {title} ({copies[best] / 1000:,.1f} us)")
    return "Fastest copies: " + "; ".join(shown) + "."


def show_stream_queue(times):
    return table(["stream queue", "ns"], [[title, f"{times[name]:,.3g}"] for name, title in STREAM_QUEUE.items()])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="build tree with the programs (build/release)")
    parser.add_argument("--runs", type=int, default=5, help="number of runs of each program (5)")
    parser.add_argument("--repetitions", type=int, default=2, help="repetitions of each benchmark in a run, in random order (2)")
    parser.add_argument("--seconds", type=float, default=0.01, help="minimum seconds per repetition of a kernel (0.01)")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    if options.runs < 1 or options.repetitions < 2 or options.seconds <= 0:
        parser.error("runs and seconds must be positive, repetitions at least 2")
    return options


def main():
    options = parse_arguments()
    if options.write:
        require_section(options.write, "micro")
    facts = machine_facts()
    start = time.monotonic()
    # There are several runs, because each run gets different pages. For buffers that exceed the
    # cache, the times depend more on the pages than on anything else.
    kernel_runs, store_runs, queue_runs = [], [], []
    program = f"{options.build}/bin/reduce_benchmark"
    for _ in range(options.runs):
        kernel_runs.append(measure(program, options.repetitions, options.seconds))
        store_runs.append(measure(program, options.repetitions, options.seconds, "copy_whole.*past_cache:0",
                                  GLIBC_TUNABLES=LOADS_AND_STORES))
        queue_runs.append(measure(f"{options.build}/bin/stream_benchmark", options.repetitions, 10 * options.seconds))
    kernels, queue = medians(kernel_runs), medians(queue_runs)
    command = " ".join(["./dev micro", *shown_arguments(sys.argv[1:], {"--build", "--write"})])
    ratios = medians([kernel_ratios(run) for run in kernel_runs])
    goals, met = judge(ratios)
    goals.append(show_against_stores(medians([against_stores(*each) for each in zip(kernel_runs, store_runs)])))
    parts = [show_run(facts, command, time.monotonic() - start),
             "Reductions: time relative to memcpy in cache / time relative to the fastest copy past the cache.",
             *[show_kernels(ratios, ranks) for ranks in RANKS], show_copies(kernels), "Goals:\n\n" + "\n".join(goals),
             show_stream_queue(queue)]
    print("\n\n".join(parts))
    if options.write:
        write_section(options.write, "micro", parts)
    return 0 if met or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
