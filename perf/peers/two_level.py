#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares all-reduces between nodes with several ranks each: hccl over TCP on loopback, and Open MPI between network
namespaces, with shared memory within each. The floor is hccl with one rank per node. All take turns in one run.

Prints Markdown to standard output and progress to standard error. Open MPI is left out without root and iproute2, which
the namespaces need. On two idle cores a run takes about five minutes."""
import argparse
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, is_built, parse_list, parse_size, progress, require_built, warn_of_load
from drivers import TUNED, DriverError, Field, Side, mpi_environment, our_environment
from measure import Race
from report import TIMES, all_facts, show_section, show_size, show_summary, write_samples
from page import require_section, show_run, shown_arguments, write_section  # found through report.py

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB]
VERIFY_UP_TO = 2 * MIB
HOSTS_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "support", "hosts.sh")
# If ranks outnumber cores, Open MPI takes thousands of times as long unless waiting ranks yield.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
HIERARCHICAL = {**YIELDING, "OMPI_MCA_coll_han_priority": "100", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


class Hosts:
    """Connected network namespaces, and the agent with which mpirun starts processes in them."""

    def __init__(self, count):
        self.count = count
        self.tag = f"{os.getpid()}-bench"
        self.folder = tempfile.TemporaryDirectory()
        self.run_script("up", str(count))
        self.agent = os.path.join(self.folder.name, "agent")
        # Each host needs its own name, because Open MPI names its shared memory after the host.
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nnumber=$((${1##*.} - 1))\nshift\n"
                       f"exec ip netns exec hccl-{self.tag}-$number unshare --uts sh -c "
                       "\"hostname host$number; $*\"\n")
        os.chmod(self.agent, stat.S_IRWXU)

    def run_script(self, verb, *more):
        subprocess.run(["bash", HOSTS_SCRIPT, verb, self.tag, *more], check=True)

    def mpirun(self, each, program):
        """Returns the command that runs `program` with `each` ranks on each host."""
        hosts = ",".join(f"10.213.0.{number + 1}:{each}" for number in range(self.count))
        command = ["mpirun", "--mca", "plm_rsh_agent", self.agent, "--host", hosts, "--bind-to", "none",
                   "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
                   "-np", str(self.count * each), program]
        return ["ip", "netns", "exec", f"hccl-{self.tag}-0", "unshare", "--uts", "sh", "-c",
                f"hostname host0; exec {shlex.join(command)}"]

    def close(self):
        self.run_script("down")
        self.folder.cleanup()


class SeveralRanks(Field):
    """Nodes with several ranks each."""

    least_floor_size = 1

    def __init__(self, build, ranks, nodes, hosts):
        self.build = build
        self.nodes = nodes
        self.hosts = hosts
        super().__init__(f"{build}/bin", ranks)

    def start_sides(self):
        self.start_ours("--nodes", str(self.nodes))
        argv = [f"{self.binaries}/hccl_collectives", "-g", str(self.nodes), "--nodes", str(self.nodes)]
        self.floors = [Side(self.start("hccl, one rank per node", argv, our_environment()), "one rank per node")]
        if self.hosts:
            self.peers = [Side(self.start_mpi(f"Open MPI, {label}", settings), label) for label, settings in
                        (("yielding", YIELDING), ("tuned", {**TUNED, **YIELDING}), ("coll/han", HIERARCHICAL))]

    def start_mpi(self, name, settings):
        # mpirun passes Open MPI's variables to the ranks on all hosts.
        argv = self.hosts.mpirun(self.ranks // self.nodes, os.path.abspath(f"{self.binaries}/mpi_collectives"))
        return self.start(name, argv, {**mpi_environment(), **settings})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--two-level", action="store_true", help="measure this comparison")
    parser.add_argument("--nodes", type=parse_list(int), default=[2, 4], metavar="N,N", help="numbers of nodes (2,4)")
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="ranks of all nodes together (8)")
    parser.add_argument("--build", default="build/release", help="build tree with the drivers (build/release)")
    parser.add_argument("--sizes", type=parse_list(parse_size), default=SIZES, metavar="SIZE,SIZE",
                        help="buffer sizes (8,512,4K,32K,256K,2M,16M)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--seconds", type=float, default=0.2, help="minimum seconds per cell (0.2)")
    parser.add_argument("--json", metavar="FILE", help="write every sample, in nanoseconds")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a required goal is missed")
    options = parser.parse_args()
    arguments = [argument for argument in sys.argv[1:] if argument != "--two-level"]  # this option takes no value
    options.shown = shown_arguments(arguments, {"--build", "--json", "--write"})
    if any(nodes < 2 or options.ranks < 2 * nodes or options.ranks % nodes for nodes in options.nodes):
        parser.error("each of two or more nodes must have the same number of ranks, and at least two")
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("rounds and seconds must be positive")
    return options


def why_no_peer(build):
    """Returns the reason why Open MPI cannot be measured, or an empty string."""
    if not is_built(build, "mpi_collectives") or not shutil.which("mpirun"):
        return ("mpi_collectives is not built or mpirun is not installed; install libopenmpi-dev and openmpi-bin, and "
                "configure the build again")
    allowed = subprocess.run(["bash", HOSTS_SCRIPT, "allowed"], capture_output=True, text=True, check=False)
    return "" if allowed.returncode == 0 else (allowed.stdout + allowed.stderr).strip()


def measure(options, nodes, hosts):
    """Returns the cells for one number of nodes, and Open MPI's title (None if it was not measured)."""
    with SeveralRanks(options.build, options.ranks, nodes, hosts) as field:
        races = []
        for size in options.sizes:
            progress(f"{nodes} nodes, {show_size(size)}: choosing settings")
            races.append(Race(field, "all_reduce", size, options.seconds, with_default=False))
            if size <= VERIFY_UP_TO:
                races[-1].verify()
        for number in range(options.rounds):
            progress(f"{nodes} nodes, round {number + 1} of {options.rounds}")
            for race in races:
                race.round(number)
        title = next((driver.title for driver in field.drivers if driver.name.startswith("Open MPI")), None)
    return [race.cell for race in races], title


def measure_all(options, missing):
    """Returns [("two_level", cells)], one element for each number of nodes, and Open MPI's title."""
    sections, title = [], None
    for nodes in options.nodes:
        hosts = None if missing else Hosts(nodes)
        try:
            cells, title = measure(options, nodes, hosts)
        finally:
            if hosts:
                hosts.close()
        sections.append(("two_level", cells))
    return sections, title


def main():
    options = parse_arguments()
    require_built(options.build, ("hccl_collectives",), "./dev bench --two-level")
    if options.write:
        require_section(options.write, "two_level")
    end_on_signals()
    facts = all_facts()
    warn_of_load(facts)
    start = time.monotonic()
    missing = why_no_peer(options.build)
    try:
        sections, title = measure_all(options, missing)
    except DriverError as error:
        progress("")
        sys.exit(f"bench: {error}")
    progress("")
    command = " ".join(["./dev bench --two-level", *options.shown])
    summary, reached = show_summary(sections, facts["cores"])
    about = [show_run(facts, command, time.monotonic() - start, f"{title}; " if title else "")]
    about += [f"Open MPI was not measured: {missing}."] if missing else []
    about += [f"{TIMES} best: the fastest of Open MPI's settings. one rank per node: hccl with a single rank on each node."]
    parts = ["\n".join(about), summary] + [show_section(section, cells) for section, cells in sections]
    print("\n\n".join(parts))
    if options.json:
        write_samples(options.json, sections, command=command, machine=facts, missing=missing)
    if options.write:
        write_section(options.write, "two_level", parts)
    return 0 if reached or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
