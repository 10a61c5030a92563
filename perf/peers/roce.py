#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares hccl over RoCE v2 with perftest's ib_write_bw and ib_send_lat, Open MPI over UCX, hccl over TCP, and a plain
TCP socket, between two nodes of one rank each. All take turns in one run.

The nodes are in a virtual machine with soft-RoCE devices, which the script run-in-rxe-vm starts (set RXE_VM to its
path; the default is in ../shared/rxe, next to the checkout). Prints Markdown to standard output and progress to
standard error. On two idle cores a run takes about four minutes."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, progress, require_built
from report import all_facts, show_size
from page import require_section, show_run, shown_arguments, table, write_section  # found through report.py

MIB = 1 << 20
LARGE = [4 * MIB, 16 * MIB]
PING_PONGS, EXCHANGES = 1000, {4 * MIB: 10, 16 * MIB: 4}
WRITES = {64 << 10: 1500, LARGE[0]: 25}  # {bytes: writes}: perftest's default size, and one of LARGE
LATENCY_MUST, LATENCY_AIM = 1.5, 1.2
BANDWIDTH_MUST, BANDWIDTH_AIM = 0.9, 0.97
ARITHMETIC_MUST = 0.75  # for all-reduces, whose speed the emulated processor limits
UCX = {"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_IB_GID_INDEX": "2",
       "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/16"}
AGENT = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
k=${1#node}; shift; exec on-node "$k" bash -c "$*"
"""


def find_machine():
    machine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/support/rxe_machine.sh")
    found = subprocess.run([machine, "available"], check=False, capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(f"bench: {found.stderr.strip()}")
    return machine


# The following code runs in the virtual machine.

def output_of(argv, variables=None, seconds=120):
    done = subprocess.run(argv, env={**os.environ, **(variables or {})}, check=False, capture_output=True, text=True,
                          timeout=seconds, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(argv)} exited with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout


def perftest(program, *arguments):
    """Runs a program of perftest on both nodes. Returns the numbers in the last row of the table that it prints."""
    common = ["-x", os.environ["RXE_GID_INDEX"], "-F", *arguments]
    with subprocess.Popen(["on-node", "0", program, "-d", "rxe0", *common], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as server:
        time.sleep(1)
        lines = output_of(["on-node", "1", program, "-d", "rxe1", *common, "node0"]).splitlines()
        server.wait(timeout=20)
    rows = [line for line in lines if re.match(r"^ *\d+ +\d+ ", line)]
    return [float(number) for number in rows[-1].split()]


def pair(argv, variables):
    """Runs a program as ranks 0 and 1. Returns the median and mean microseconds per call."""
    with subprocess.Popen(["on-node", "1", *argv], env={**os.environ, **variables, "RANK": "1"}, stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as other:
        text = output_of(["on-node", "0", *argv], {**variables, "RANK": "0"})
        other.wait(timeout=20)
    return [float(number) for number in text.split()]


def hccl(build, what, size, calls, **variables):
    return pair([f"{build}/bin/hccl_pair", what, str(size), str(calls)],
                {"HCCL_COMM_ID": "10.77.0.1:6000", "HCCL_SOCKET_IFNAME": "roce", "HCCL_DEBUG": "", **variables})


def tcp_socket(build, how):
    return pair([f"{build}/bin/tcp_pair", how, "10.77.0.1", "6001", str(PING_PONGS)], {})[0] / 2


def open_mpi(build, what, size, calls):
    """Returns Open MPI's median and mean microseconds per call, or None if the run fails: UCX occasionally fails on
    this device."""
    argv = ["on-node", "0", "timeout", "60", "mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", "node0,node1",
            "-np", "2", "--mca", "plm_rsh_agent", "/tmp/agent"]
    for name in UCX:
        argv += ["-x", name]
    done = subprocess.run([*argv, f"{build}/bin/mpi_pair", what, str(size), str(calls)], env={**os.environ, **UCX},
                          check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return [float(number) for number in done.stdout.split()[-2:]] if done.returncode == 0 else None


def measure(options):
    with open("/tmp/agent", "w", encoding="utf-8") as agent:
        agent.write(AGENT)
    os.chmod("/tmp/agent", 0o755)
    with_mpi = os.path.exists(f"{options.build}/bin/mpi_pair")
    ring = {"HCCL_ALGO": "ring", "HCCL_TRANSPORT": "verbs"}
    for _ in range(options.rounds):
        sample = {"send_lat": perftest("ib_send_lat", "-s", "8", "-n", str(PING_PONGS))[4],
                  **{f"write_bw {size}": perftest("ib_write_bw", "-b", "-s", str(size), "-n", str(writes))[3]
                     for size, writes in WRITES.items()},
                  "verbs 8": hccl(options.build, "ping_pong", 8, PING_PONGS, HCCL_TRANSPORT="verbs")[0] / 2,
                  "tcp 8": hccl(options.build, "ping_pong", 8, PING_PONGS, HCCL_TRANSPORT="tcp")[0] / 2,
                  "polled socket": tcp_socket(options.build, "poll"),
                  "blocking socket": tcp_socket(options.build, "block")}
        mpi = {}
        if with_mpi:
            mpi = {"8": open_mpi(options.build, "ping_pong", 8, PING_PONGS),
                   **{f"{what} {LARGE[0]}": open_mpi(options.build, what, LARGE[0], EXCHANGES[LARGE[0]])
                      for what in ("exchange", "all_reduce")}}
        for size in LARGE:
            calls = EXCHANGES[size]
            sample[f"exchange {size}"] = hccl(options.build, "exchange", size, calls, HCCL_TRANSPORT="verbs")[1]
            sample[f"all_reduce {size}"] = hccl(options.build, "all_reduce", size, calls, **ring)[1]
            sample[f"tcp all_reduce {size}"] = hccl(options.build, "all_reduce", size, calls, HCCL_ALGO="ring",
                                                    HCCL_TRANSPORT="tcp")[1]
        for name, times in mpi.items():
            if times:
                sample[f"mpi {name}"] = times[0] / 2 if name == "8" else times[1]
        print(json.dumps(sample), flush=True)


# The following code runs outside the virtual machine; main() also runs in it.

def verdict(ratio, must, aim, at_most):
    good = (lambda bound: ratio <= bound) if at_most else (lambda bound: ratio >= bound)
    return "aim" if good(aim) else "reached" if good(must) else "MISSED"


def rows_of(samples):
    """Returns the rows of both tables and the number of missed goals."""
    def median(name):
        return statistics.median(sample[name] for sample in samples if name in sample)

    def shown(name, show):
        return show(name) if any(name in sample for sample in samples) else "–"

    verdicts = []
    ratio = statistics.median(sample["verbs 8"] / sample["send_lat"] for sample in samples)
    verdicts.append(verdict(ratio, LATENCY_MUST, LATENCY_AIM, True))
    latency = [["8 B", f"{median('verbs 8'):.1f}", f"{median('send_lat'):.1f}",
                shown("mpi 8", lambda name: f"{median(name):.1f}"), f"{median('tcp 8'):.1f}",
                f"{median('polled socket'):.1f}", f"{median('blocking socket'):.1f}", f"{ratio:.2f}",
                f"{LATENCY_MUST} / {LATENCY_AIM}: {verdicts[-1]}"]]
    bandwidth = []
    default, same = (f"write_bw {size}" for size in WRITES)
    in_mb = 1.048576
    for size in LARGE:
        # Both calls move `size` bytes in each direction. The all-reduce runs on a ring of two ranks.
        def rate(name, size=size):
            return f"{2 * size / median(name):.0f}"

        for what, must in (("exchange", BANDWIDTH_MUST), ("all_reduce", ARITHMETIC_MUST)):
            share = statistics.median(2 * size / sample[f"{what} {size}"] / (sample[default] * in_mb) for sample in samples)
            verdicts.append(verdict(share, must, BANDWIDTH_AIM, False))
            bandwidth.append([show_size(size), what, rate(f"{what} {size}"), f"{median(default) * in_mb:.0f}",
                              f"{median(same) * in_mb:.0f}",
                              shown(f"mpi {what} {size}", rate), shown(f"tcp {what} {size}", rate), f"{share:.2f}",
                              f"{must} / {BANDWIDTH_AIM}: {verdicts[-1]}"])
    return latency, bandwidth, verdicts.count("MISSED")


def show(options, samples, facts, seconds):
    """Returns the parts of the page and the number of missed goals."""
    latency, bandwidth, missed = rows_of(samples)
    command = " ".join(["./dev bench --rxe", *options.shown])
    parts = [show_run(facts, command, seconds, f"mpirun (Open MPI) {facts['mpi'].rsplit(' ', 1)[-1]} over UCX; "),
             f"Goals: {len(latency) + len(bandwidth)} judged, {missed} missed. Ratios are medians of the ratios within a round; "
             "other values are medians over the rounds.",
             "### 8 bytes: half a round trip, microseconds",
             table(["bytes", "hccl", "ib_send_lat", "Open MPI, UCX", "hccl over TCP", "TCP socket, polled", "TCP socket, blocking",
                    "/ ib_send_lat", "must / aim"], latency),
             "### Large messages: MB/s, both directions together",
             table(["bytes", "call", "hccl", "ib_write_bw -b", "ib_write_bw -b -s 4M", "Open MPI, UCX", "hccl over TCP",
                    "/ ib_write_bw", "must / aim"], bandwidth)]
    return parts, missed


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--rxe", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a required goal is missed")
    options = parser.parse_args()
    given = [argument for argument in sys.argv[1:] if argument != "--rxe"]
    options.shown = shown_arguments(given, {"--build", "--write"})
    end_on_signals()
    if options.inside:
        return measure(options)
    require_built(options.build, ("hccl_pair", "tcp_pair"), "./dev bench --rxe")
    if options.write:
        require_section(options.write, "rxe")
    facts, begin, samples = all_facts(), time.monotonic(), []
    argv = [find_machine(), "--nodes", "2", "--timeout", "1200", sys.executable, os.path.abspath(__file__), "--inside",
            "--build", os.path.abspath(options.build), "--rounds", str(options.rounds)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as machine:
        for line in machine.stdout:
            if line.startswith("{"):
                samples.append(json.loads(line))
                progress(f"round {len(samples)} of {options.rounds}")
    if machine.returncode != 0 or not samples:
        sys.exit(f"bench: the virtual machine exited with {machine.returncode}")
    progress("")
    parts, missed = show(options, samples, facts, time.monotonic() - begin)
    print("\n\n".join(parts))
    if options.write:
        write_section(options.write, "rxe", parts)
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
