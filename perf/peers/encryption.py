#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of encryption: all-reduces between two nodes over TCP on loopback, with each setting of HCCL_ENCRYPT,
and with Gloo with and without TLS; and how long ranks take to initialise a communicator. All take turns in one run.

Debian's Gloo has no TLS. If Gloo was built with it (docs/performance.md says how), --gloo names its gloo_collectives.
--before names the hccl-perf of another version, whose initialisation is measured too.
Prints Markdown to standard output and progress to standard error. A run takes about five minutes."""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, is_built, parse_list, parse_size, progress, require_built, warn_of_load
from drivers import Driver, DriverError, Field, Side, our_environment
from measure import iterations_for
from nodes import GLOO_ALGORITHMS, GLOO_MOST_POLLED, GLOO_POLLED
from report import all_facts, show_size, show_time
from page import require_section, show_run, shown_arguments, table, write_section  # found through report.py

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8, 4 * KIB, MIB, 16 * MIB]
SETTINGS = ["off", "integrity", "full"]
RANKS = 2
# Ranks and nodes for the initialisation. Each rank of Gloo connects to all others, so it is measured with few ranks only.
JOBS = [(8, 1), (64, 8), (1024, 128)]
MOST_RANKS_OF_GLOO = 64
# With TLS, these variants of Gloo often hang in calls of 16 MiB.
HANG_WITH_TLS = GLOO_ALGORITHMS[1:]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--encryption", action="store_true", help="this comparison")
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--gloo", metavar="PROGRAM", help="a gloo_collectives whose Gloo has TLS")
    parser.add_argument("--before", metavar="PROGRAM", help="the hccl-perf of another version, to compare the initialisation with")
    parser.add_argument("--sizes", type=parse_list(parse_size), default=SIZES, metavar="SIZE,SIZE", help="buffer sizes (8,4K,1M,16M)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--seconds", type=float, default=0.3, help="minimum seconds per cell (0.3)")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    options = parser.parse_args()
    options.shown = shown_arguments([one for one in sys.argv[1:] if one != "--encryption"],
                                    {"--build", "--write", "--gloo", "--before"})
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("rounds and seconds must be positive")
    return options


def make_certificate(folder):
    """Makes a key and a certificate that signs itself, which Gloo's ranks share."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
                   check=True, capture_output=True)


class Encrypted(Field):
    """Two ranks of each library, once for each protection. `groups` maps a column to the sides of which the fastest counts."""

    def __init__(self, build, gloo, folder):
        self.gloo_with_tls = gloo
        self.folder = folder
        self.groups = {}
        self.build = build
        super().__init__(f"{build}/bin", RANKS)

    def start_sides(self):
        for setting in SETTINGS:
            argv = [f"{self.binaries}/hccl_collectives", "-g", str(RANKS), "--nodes", str(RANKS)]
            driver = self.start(f"hccl, {setting}", argv, {**our_environment(), "HCCL_ENCRYPT": setting})
            self.groups[f"hccl {setting}"] = [Side(driver, setting)]
        program = self.gloo_with_tls or f"{self.binaries}/gloo_collectives"
        if not self.gloo_with_tls and not is_built(self.build, "gloo_collectives"):
            return
        self.groups["Gloo"] = gloo_sides(self.start("Gloo", [program, str(RANKS)]))
        if self.gloo_with_tls:
            make_certificate(self.folder)
            driver = self.start("Gloo, TLS", [program, str(RANKS)], {**os.environ, "GLOO_COLLECTIVES_TLS": self.folder})
            self.groups["Gloo TLS"] = gloo_sides(driver, 4 * MIB)


def gloo_sides(driver, largest=math.inf):
    """Returns a side for each variant. `largest`: the maximum size in bytes for the variants in HANG_WITH_TLS."""
    return ([Side(driver, label, number, largest=largest if label in HANG_WITH_TLS else math.inf)
             for number, label in enumerate(GLOO_ALGORITHMS)] +
            [Side(driver, label, len(GLOO_ALGORITHMS) + number, largest=GLOO_MOST_POLLED) for number, label in enumerate(GLOO_POLLED)])


def measure(field, size, seconds, rounds):
    """Returns {column: [nanoseconds per call, one for each round]}. Chooses the fastest side of each column first."""
    chosen, iterations = {}, {}
    for column, sides in field.groups.items():
        able = [side for side in sides if size <= side.largest]
        times = {side: side.run("all_reduce", size, 5, 2) for side in able}
        chosen[column] = min(times, key=times.get)
        chosen[column].verify("all_reduce", size)
        iterations[column] = iterations_for(seconds, [times[chosen[column]]])
    samples = {column: [] for column in chosen}
    for number in range(rounds):
        progress(f"{show_size(size)}: round {number + 1} of {rounds}")
        for column in list(chosen)[number % len(chosen):] + list(chosen)[:number % len(chosen)]:
            samples[column].append(chosen[column].run("all_reduce", size, iterations[column], 2))
    return samples


def time_of_run(program, ranks, nodes):
    """Returns the seconds that a run of hccl-perf takes. Nearly all of it is the initialisation."""
    argv = [program, "all_reduce", "-g", str(ranks), "--nodes", str(nodes), "-b", "8", "-e", "8", "-w", "1", "-n", "1"]
    start = time.monotonic()
    try:
        done = subprocess.run(argv, env=our_environment(), capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        raise DriverError(f"{program}: {ranks} ranks did not finish within 120 s") from None
    if done.returncode != 0:
        raise DriverError(f"{program}: exit status {done.returncode} with {ranks} ranks\n{done.stderr.strip()}")
    return time.monotonic() - start


def time_to_connect(program, ranks, environment):
    """Returns the seconds until the ranks of gloo_collectives are connected."""
    start = time.monotonic()
    driver = Driver("Gloo", [program, str(ranks)], environment)
    seconds = time.monotonic() - start
    driver.close()
    return seconds


def initialisation(options, folder):
    """Returns a table of the initialisation: for each number of ranks, the milliseconds of each column."""
    columns = {"hccl": lambda ranks, nodes: time_of_run(f"{options.build}/bin/hccl-perf", ranks, nodes)}
    if options.before:
        columns["hccl before"] = lambda ranks, nodes: time_of_run(options.before, ranks, nodes)
    if options.gloo:
        columns["Gloo"] = lambda ranks, _: time_to_connect(options.gloo, ranks, None)
        columns["Gloo TLS"] = lambda ranks, _: time_to_connect(options.gloo, ranks, {**os.environ, "GLOO_COLLECTIVES_TLS": folder})
    rows = []
    for ranks, nodes in JOBS:
        samples = {column: [] for column in columns if ranks <= MOST_RANKS_OF_GLOO or column.startswith("hccl")}
        for number in range(options.rounds):
            progress(f"{ranks} ranks join: round {number + 1} of {options.rounds}")
            for column in list(samples)[number % len(samples):] + list(samples)[:number % len(samples)]:
                samples[column].append(columns[column](ranks, nodes))
        row = [f"{ranks:,}", str(nodes)]
        row += [f"{1000 * statistics.median(samples[column]):,.0f}" if column in samples else "" for column in columns]
        if options.before:
            row.append(f"{statistics.median(a / b for a, b in zip(samples['hccl'], samples['hccl before'])):.2f}")
        rows.append(row)
    return table(["ranks", "nodes", *columns, *(["hccl / before"] if options.before else [])], rows)


def main():
    options = parse_arguments()
    require_built(options.build, ("hccl_collectives", "hccl-perf"), "./dev bench --encryption")
    if options.write:
        require_section(options.write, "encryption")
    end_on_signals()
    facts = all_facts()
    warn_of_load(facts)
    start = time.monotonic()
    rows = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            with Encrypted(options.build, options.gloo, folder) as field:
                for size in options.sizes:
                    samples = measure(field, size, options.seconds, options.rounds)
                    row = [show_size(size)] + [show_time(samples[column]) for column in samples]
                    for column in ("hccl off", "Gloo TLS"):
                        ratio = [a / b for a, b in zip(samples["hccl full"], samples.get(column, []))]
                        row.append(f"{statistics.median(ratio):.2f}" if ratio else "")
                    rows.append(row)
                columns = ["bytes", *field.groups, "full / off", "full / Gloo TLS"]
                titles = [driver.title for driver in field.drivers if driver.name == "Gloo"]
            joining = initialisation(options, folder)
    except DriverError as error:
        progress("")
        sys.exit(f"bench: {error}")
    progress("")
    command = " ".join(["./dev bench --encryption", *options.shown])
    parts = [show_run(facts, command, time.monotonic() - start, "".join(f"{title}; " for title in titles)),
             "Times are microseconds per call, queued back to back (medians over the rounds), of the fastest variant of each library.",
             table(columns, rows),
             "Milliseconds in which all ranks initialise a communicator (medians over the rounds). hccl: at most a whole run of "
             "`hccl-perf all_reduce -b 8 -e 8 -w 1 -n 1`." +
             (" Gloo: from the start of its processes until all are connected to each other." if options.gloo else ""),
             joining]
    print("\n\n".join(parts))
    if options.write:
        write_section(options.write, "encryption", parts)


if __name__ == "__main__":
    sys.exit(main())
