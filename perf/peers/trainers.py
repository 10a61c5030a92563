#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training, side by side: ddp_trainer in its three modes and the same loop on MPI_Allreduce, taking turns in one run.

Prints markdown on standard output and progress on standard error. What is measured: docs/performance.md. Expect about
eight minutes on two idle cores, 2 with --quick."""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
from drivers import ALGORITHMS, TUNED, end_with_parent, mpi_environment, our_environment
from measure import rotated
from report import all_facts
from page import require_section, show_run, shown_arguments, table, write_section  # found through report.py

MIB = 1 << 20
MODES = ["ddp", "fast_ddp", "sharded"]
# Gradients of nearly this size, in as little computation as they allow.
MODELS = {
    1 * MIB: {"--hidden": "540,400", "--batch": "32", "--micro-batch": "4", "--rate": "0.1"},
    32 * MIB: {"--hidden": "2800,2900", "--batch": "64", "--micro-batch": "8", "--rate": "0.01"},
}
EPOCHS = {1 * MIB: 6, 32 * MIB: 2}
COMMUNICATION_MUST = 1.5  # times faster than MPI_Allreduce
DDP_MUST = 1.05  # of fast_ddp's step at most


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the programs (build/release)")
    parser.add_argument("--ranks", type=int, default=8, help="number of ranks (8)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", metavar="FILE", help="write every sample")
    parser.add_argument("--write", metavar="FILE", help="put the results into their section of this document")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.shown = shown_arguments(sys.argv[1:], {"--build", "--json", "--write"})
    if options.rounds < 1 or options.ranks not in (1, 2, 4, 8):
        parser.error("rounds must be positive, ranks 1, 2, 4 or 8")
    return options


def progress(text):
    print(f"\r\033[K{text}" if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n",
          file=sys.stderr, flush=True)


class Side:
    """One way to train: a row of the table, with a sample of each figure for every round."""

    def __init__(self, label, argv, environment):
        self.label = label
        self.argv = argv
        self.environment = environment
        self.steps = []  # milliseconds: median over the epochs of a run
        self.communication = []

    def run(self, model, epochs):
        """(step, communication) in milliseconds."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.json")
            words = [word for pair in model.items() for word in pair]
            done = subprocess.run([*self.argv, *words, "--epochs", str(epochs), "--json", path], check=False,
                                  env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  preexec_fn=end_with_parent, timeout=600)
            if done.returncode != 0:
                sys.exit(f"bench: {self.label}: {done.stderr.decode(errors='replace').strip()}")
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["epochs"][1:]  # the first touches memory for the first time
        return tuple(statistics.median(row[name] for row in rows) for name in ("step_ms", "communication_ms"))

    def sample(self, model, epochs):
        step, communication = self.run(model, epochs)
        self.steps.append(step)
        self.communication.append(communication)

    def as_json(self):
        return {"side": self.label, "step_ms": self.steps, "communication_ms": self.communication}


def our_sides(options):
    program = f"{options.build}/bin/ddp_trainer"
    return [Side(f"hccl, {mode}", [program, "-g", str(options.ranks), "--mode", mode], our_environment())
            for mode in MODES]


def mpi_sides(options):
    more = ["--oversubscribe"] if options.ranks > len(os.sched_getaffinity(0)) else []
    argv = ["mpirun", *more, "-np", str(options.ranks), f"{options.build}/bin/mpi_trainer"]
    base = {key: value for key, value in mpi_environment().items() if key != "HCCL_COMM_ID"}
    sides = [Side("Open MPI, default", argv, base), Side("Open MPI, tuned", argv, {**base, **TUNED})]
    for number, name in ALGORITHMS["all_reduce"].items():
        forced = {**base, **TUNED, "OMPI_MCA_coll_tuned_allreduce_algorithm": str(number)}
        sides.append(Side(f"Open MPI, tuned, {name}", argv, forced))
    return sides


def best_of(sides, model):
    """The two whose communication is the shortest in one short run each, and the default."""
    times = []
    for side in sides:
        progress(f"choosing settings: {side.label}")
        times.append((side.run(model, 2)[1], side))
    times.sort(key=lambda item: item[0])
    chosen = [side for _, side in times[:2]]
    return chosen + [side for side in sides[:1] if side not in chosen]


def ratio(ones, others):
    """Median of the ratios within a round."""
    return statistics.median(one / other for one, other in zip(ones, others))


def race(options, size):
    model, epochs = MODELS[size], EPOCHS[size]
    ours = our_sides(options)
    theirs = best_of(mpi_sides(options), model)
    for number in range(options.rounds):
        progress(f"{size // MIB} MiB: round {number + 1} of {options.rounds}")
        for side in rotated(ours + theirs, number):
            side.sample(model, epochs)
    return ours, sorted(theirs, key=lambda side: statistics.median(side.communication))


def goals(size, ours, theirs):
    """[(text, reached)]"""
    ddp, fast = ours[0], ours[1]
    name = f"{size // MIB} MiB of gradients"
    verdicts = []
    for side in (ddp, fast):
        faster = ratio(theirs[0].communication, side.communication)
        verdicts.append((f"{name}: communication of {side.label} is {faster:.2f} times faster than that of "
                         f"{theirs[0].label}, must reach {COMMUNICATION_MUST}", faster >= COMMUNICATION_MUST))
    slower = ratio(ddp.steps, fast.steps)
    verdicts.append((f"{name}: a step of ddp takes {slower:.2f} times that of fast_ddp, at most {DDP_MUST}",
                     slower <= DDP_MUST))
    return verdicts


def show_race(options, size, ours, theirs):
    best = theirs[0]
    rows = []
    for side in ours + theirs:
        rows.append([side.label, f"{statistics.median(side.steps):.3g}", f"{statistics.median(side.communication):.3g}",
                     f"{ratio(side.steps, best.steps):.2f}", f"{ratio(best.communication, side.communication):.2f}"])
    words = " ".join(word for pair in MODELS[size].items() for word in pair)
    return "\n\n".join([
        f"### A training with {size // MIB} MiB of gradients, {options.ranks} ranks",
        f"`ddp_trainer -g {options.ranks} {words} --epochs {EPOCHS[size]}`",
        table(["side", "step, ms", "communication, ms", f"step / that of {best.label}",
               "its communication: times faster"], rows)])


def stop(number, _):
    sys.exit(128 + number)


def main():
    options = parse_arguments()
    for program in ("ddp_trainer", "mpi_trainer"):
        if not os.access(f"{options.build}/bin/{program}", os.X_OK):
            sys.exit(f"bench: {options.build}/bin/{program} is missing. Type: ./dev bench --trainer")
    if options.write:
        require_section(options.write, "trainer")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    facts = all_facts()
    start = time.monotonic()
    parts, verdicts, samples = [], [], []
    for size in MODELS:
        ours, theirs = race(options, size)
        parts.append(show_race(options, size, ours, theirs))
        verdicts += goals(size, ours, theirs)
        samples.append({"bytes": size, "sides": [side.as_json() for side in ours + theirs]})
    progress("")
    command = " ".join(["./dev bench --trainer", *options.shown])
    summary = "\n".join(f"- {'reached' if reached else 'MISSED'}: {text}" for text, reached in verdicts)
    run = show_run(facts, command, time.monotonic() - start, f"{facts['mpi']}; ")
    parts = [run, summary] + parts
    print("\n\n".join(parts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"command": command, "machine": facts, "races": samples}, file, indent=1)
    if options.write:
        write_section(options.write, "trainer", parts)
    return 0 if all(reached for _, reached in verdicts) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
