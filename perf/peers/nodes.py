#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares hccl, Open MPI, Gloo and a raw exchange of the same bytes across nodes, over TCP on loopback. All take
turns in one run. Every rank is a node of its own.

Prints Markdown to standard output and progress to standard error. docs/performance.md describes what is measured. On
two idle cores a run takes about five minutes, two with --quick."""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, is_built, parse_list, parse_size, progress, require_built, warn_of_load
from drivers import DriverError, Field, Side, end_with_parent
from measure import Race
from report import TIMES, all_facts, show_section, show_size, show_summary, write_samples
from page import require_section, show_run, shown_arguments, write_section  # found through report.py

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
LATENCY_SIZES = [8]
VERIFY_UP_TO = 16 * MIB
YARDSTICK_SIZES = [16 * MIB, 64 * MIB]
IPERF_SECONDS = 3
SOCKET_BUFFER = 4 * MIB
LARGEST_SEND = MIB

TCP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
FORCED = {**TCP, "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
BUFFERED = {**FORCED, "OMPI_MCA_btl_tcp_sndbuf": str(SOCKET_BUFFER), "OMPI_MCA_btl_tcp_rcvbuf": str(SOCKET_BUFFER)}
# Makes Open MPI send large messages in pieces that the receiver copies, instead of writing to the receiver's buffer.
SENT = {**FORCED, "OMPI_MCA_btl_tcp_flags": "send", "OMPI_MCA_btl_tcp_max_send_size": str(LARGEST_SEND)}
GLOO_ALGORITHMS = ["ring", "bcube", "AllreduceRing", "AllreduceRingChunked", "AllreduceHalvingDoubling"]
GLOO_POLLED = [f"{name}, polling" for name in GLOO_ALGORITHMS[2:]]
GLOO_MOST_POLLED = 64 * KIB
RAW_VARIANTS = [f"{buffers}, {call} a call" for buffers in ("kernel's buffers", "buffers of 1 MiB", "buffers of 4 MiB")
                for call in ("64 KiB", "512 KiB", "all")]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, choices=[2], help="number of nodes, with one rank each")
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--sizes", type=parse_list(parse_size), default=SIZES, metavar="SIZE,SIZE",
                        help="buffer sizes (8,4K,64K,1M,4M,16M,64M)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; 2 with --quick)")
    parser.add_argument("--seconds", type=float, help="minimum seconds per cell (0.3; 0.1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter cells")
    parser.add_argument("--json", metavar="FILE", help="write every sample, in nanoseconds")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a required goal is missed")
    options = parser.parse_args()
    options.shown = shown_arguments(sys.argv[1:], {"--nodes", "--build", "--json", "--write"})
    options.rounds = (2 if options.quick else 5) if options.rounds is None else options.rounds
    options.seconds = (0.1 if options.quick else 0.3) if options.seconds is None else options.seconds
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("rounds and seconds must be positive")
    if options.json and not os.path.isdir(os.path.dirname(options.json) or "."):
        parser.error(f"{options.json}: no such folder")
    return options


class PingPong(Side):
    """A side whose calls are message round trips."""

    def run(self, collective, size, iterations, warmup, latency=True, in_place=False):
        return super().run(collective, size, iterations, warmup, latency, in_place)


class AcrossNodes(Field):
    """Ranks that communicate only over loopback. Leaves out the libraries that are not installed; `missing` maps each
    of them to an explanation."""

    least_floor_size = 1

    def __init__(self, build, nodes):
        self.build = build
        self.missing = {}
        self.ping_pongs = []
        super().__init__(f"{build}/bin", nodes)

    def start_sides(self):
        self.start_ours("--nodes", str(self.ranks))
        raw = self.start("raw socket", [f"{self.binaries}/raw_socket"])
        self.floors = [Side(raw, label, number, "sendrecv") for number, label in enumerate(RAW_VARIANTS)]
        self.ping_pongs = [PingPong(raw, RAW_VARIANTS[number], number, "sendrecv") for number in (0, 3, 6)]
        if self.is_there("Open MPI", "mpi_collectives", "libopenmpi-dev", "mpirun"):
            self.default = Side(self.start_mpi("Open MPI, default", TCP), "default")
            forced = self.start_mpi("Open MPI, forced", FORCED)
            buffered = self.start_mpi("Open MPI, buffers", BUFFERED)
            sent = self.start_mpi("Open MPI, sends", SENT)
            self.peers = [self.default, *self.mpi_sides(forced, "all_reduce", "default")[1:],
                        *self.mpi_sides(buffered, "all_reduce", f"buffers of {show_size(SOCKET_BUFFER)}"),
                        *self.mpi_sides(sent, "all_reduce", f"sends of {show_size(LARGEST_SEND)}")]
        if self.is_there("Gloo", "gloo_collectives", "libgloo-dev"):
            gloo = self.start("Gloo", [f"{self.binaries}/gloo_collectives", str(self.ranks)])
            self.gloo = [Side(gloo, label, number) for number, label in enumerate(GLOO_ALGORITHMS)]
            self.gloo += [Side(gloo, label, len(GLOO_ALGORITHMS) + number, largest=GLOO_MOST_POLLED)
                          for number, label in enumerate(GLOO_POLLED)]

    def is_there(self, peer, program, package, launcher=None):
        if not is_built(self.build, program):
            self.missing[peer] = f"{self.binaries}/{program} is missing; was {package} installed when CMake configured the build?"
        elif launcher and not shutil.which(launcher):
            self.missing[peer] = f"{launcher} is not installed"
        return peer not in self.missing


def races_of(field, sizes, seconds, **more):
    races = []
    for size in sizes:
        progress(f"{show_size(size)}: choosing settings")
        races.append(Race(field, "all_reduce", size, seconds, **more))
        if size <= VERIFY_UP_TO:
            races[-1].verify()
    return races


def run_races(options, field):
    """Returns [(section, cells)]."""
    alone = [size for size in LATENCY_SIZES if size in options.sizes]
    queued = races_of(field, options.sizes, options.seconds)
    latency = races_of(field, alone, options.seconds, latency=True, floors=field.ping_pongs)
    for number in range(options.rounds):
        progress(f"round {number + 1} of {options.rounds}")
        for race in queued + latency:
            race.round(number)
    sections = [("nodes", queued), ("nodes latency", latency)]
    return [(section, [race.cell for race in races]) for section, races in sections if races]


class YardstickError(Exception):
    """iperf3 is missing or has failed."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def run_iperf():
    """Returns the gigabytes per second in each direction. Both directions run at the same time, each over its own
    connection."""
    if not shutil.which("iperf3"):
        raise YardstickError("iperf3 is not installed")
    port = free_port()
    server = subprocess.Popen(["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=end_with_parent)
    try:
        for line in server.stdout:
            if "listening" in line:
                break
        done = subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", port, "--bidir", "-t", str(IPERF_SECONDS), "-J"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent,
                              timeout=IPERF_SECONDS + 30, check=False)
        return iperf_rates(done.stdout)
    except subprocess.TimeoutExpired:
        raise YardstickError("iperf3 did not end in time") from None
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def iperf_rates(report):
    try:
        end = json.loads(report)
        if "error" in end:
            raise YardstickError(f"iperf3: {end['error']}")
        return [end["end"][name]["bits_per_second"] / 8e9 for name in ("sum_received", "sum_received_bidir_reverse")]
    except (ValueError, KeyError, TypeError):
        raise YardstickError("iperf3 printed no report in a known format") from None


def measure_yardstick():
    """Returns a pair of rates, or the reason why they could not be measured."""
    progress("iperf3")
    try:
        return run_iperf()
    except YardstickError as error:
        return str(error)


def show_yardstick(runs):
    """Returns a paragraph about `runs`, the results of measure_yardstick() before and after the rounds."""
    lines = []
    for when, rates in zip(("Before", "After"), runs):
        if isinstance(rates, str):
            return f"No yardstick: {rates}."
        times = " and ".join(f"{show_size(size)} in {2 * size / sum(rates) / 1e6:.3g} ms" for size in YARDSTICK_SIZES)
        lines.append(f"{when} the rounds, `iperf3 --bidir` moved {rates[0]:.2f} and {rates[1]:.2f} GB/s in its two "
                     f"directions. At the mean of these rates, each direction would move {times}.")
    return "\n".join(lines)


def show_exchange(sections):
    """Returns a paragraph that compares hccl's all-reduce of 8 B with half a raw ping-pong (one message) and with a raw
    exchange (two simultaneous messages), and these two with each other. Returns an empty text if a cell is missing."""
    cells = {section: cell for section, cells in sections for cell in cells if cell.size == 8}
    if not {"nodes", "nodes latency"} <= cells.keys():
        return ""
    ours, ping_pong = (statistics.median(samples) for samples in (cells["nodes latency"].ours, cells["nodes latency"].floor[1]))
    exchange = statistics.median(cells["nodes"].floor[1])
    return (f"All-reduces of 8 B with a wait after each call: hccl takes {2 * ours / ping_pong:.2f} times as long as half a raw "
            f"ping-pong and {ours / exchange:.2f} times as long as a raw exchange. A raw exchange takes "
            f"{2 * exchange / ping_pong:.2f} times as long as half a raw ping-pong.")


def show_sides(facts, field, command, seconds, runs):
    titles = [driver.title for driver in field.drivers if driver.name in ("Open MPI, default", "Gloo")]
    return "\n".join([
        show_run(facts, command, seconds, "".join(f"{title}; " for title in titles)),
        *(f"{peer} was not measured: {reason}" for peer, reason in field.missing.items()),
        f"{TIMES} best: the faster of Open MPI and Gloo. Open MPI settings: default, socket buffers of "
        f"{show_size(SOCKET_BUFFER)}, or large messages in sends of {show_size(LARGEST_SEND)}. If the name of a setting includes an "
        "algorithm, this algorithm is used; otherwise, coll/tuned chooses one. raw exchange: the same number of bytes sent and "
        "received over one socket.",
        show_yardstick(runs)])


def main():
    options = parse_arguments()
    require_built(options.build, ("hccl_collectives", "raw_socket"), f"./dev bench --nodes {options.nodes}")
    if options.write:
        require_section(options.write, "nodes")
    end_on_signals()
    facts = all_facts()
    warn_of_load(facts)
    start = time.monotonic()
    try:
        with AcrossNodes(options.build, options.nodes) as field:
            runs = [measure_yardstick()]
            sections = run_races(options, field)
            runs.append(measure_yardstick())
    except DriverError as error:
        progress("")
        sys.exit(f"bench: {error}")
    progress("")
    command = " ".join([f"./dev bench --nodes {options.nodes}", *options.shown])
    summary, reached = show_summary(sections, facts["cores"])
    parts = [show_sides(facts, field, command, time.monotonic() - start, runs), summary]
    parts += filter(None, [show_exchange(sections)])
    parts += [show_section(section, cells) for section, cells in sections]
    print("\n\n".join(parts))
    if options.json:
        write_samples(options.json, sections, command=command, machine=facts, missing=field.missing, iperf3_gb_per_s=runs)
    if options.write:
        write_section(options.write, "nodes", parts)
    return 0 if reached or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
