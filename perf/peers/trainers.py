#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ways to train a model: ddp_trainer's three modes, and the same loop with MPI_Allreduce or without any
communication. All take turns in one run.

Prints Markdown to standard output and progress to standard error. docs/performance.md describes what is measured. On
two idle cores a run takes about ten minutes, five with --quick."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, progress, require_built
from drivers import ALGORITHMS, TUNED, end_with_parent, mpi_environment, our_environment
from measure import rotated
from report import all_facts
from page import require_section, show_run, shown_arguments, table, write_section  # found through report.py

MIB = 1 << 20
MODES = ["ddp", "fast_ddp", "sharded"]
# Models by the approximate size of their gradients in bytes. Each has several buckets and little computation.
MODELS = {
    1 * MIB: {"--hidden": "350,350,350", "--bucket-mib": "0.25", "--batch": "32", "--micro-batch": "4", "--rate": "0.05"},
    32 * MIB: {"--hidden": "2000,2000,2000", "--bucket-mib": "8", "--batch": "64", "--micro-batch": "8",
               "--rate": "0.01"},
}
EPOCHS = {1 * MIB: 6, 32 * MIB: 2}
COMMUNICATION_MUST = 1.5  # minimum speed-up over MPI_Allreduce
DDP_MUST = 1.05  # maximum step time of ddp, relative to fast_ddp's


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the programs (build/release)")
    parser.add_argument("--ranks", type=int, default=8, help="number of ranks (8)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", metavar="FILE", help="write every sample")
    parser.add_argument("--write", metavar="FILE", help="write the results to their section of FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.shown = shown_arguments(sys.argv[1:], {"--build", "--json", "--write"})
    if options.rounds < 1 or options.ranks not in (1, 2, 4, 8):
        parser.error("rounds must be positive, ranks 1, 2, 4 or 8")
    return options


class Side:
    """A way to train: a row of the table."""

    def __init__(self, label, argv, environment):
        self.label = label
        self.argv = argv
        self.environment = environment
        self.steps = []  # milliseconds, each the median over the epochs of a run after the first epoch
        self.exposed = []
        self.weights = None

    def run(self, model, epochs):
        """Returns (step, exposed communication) in milliseconds."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.json")
            words = [word for pair in model.items() for word in pair]
            done = subprocess.run([*self.argv, *words, "--epochs", str(epochs), "--json", path], check=False,
                                  env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  preexec_fn=end_with_parent, timeout=600)
            if done.returncode != 0:
                sys.exit(f"bench: {self.label}: {done.stderr.decode(errors='replace').strip()}")
            with open(path, encoding="utf-8") as file:
                run = json.load(file)
        self.weights = run["weights_crc32"]
        rows = run["epochs"][1:]  # the first epoch touches memory for the first time
        return tuple(statistics.median(row[name] for row in rows) for name in ("step_ms", "communication_ms"))

    def sample(self, model, epochs):
        step, exposed = self.run(model, epochs)
        self.steps.append(step)
        self.exposed.append(exposed)

    def added(self, alone):
        """Returns the milliseconds that communication adds to a step, in each round. `alone` trains without
        communication."""
        return [step - without for step, without in zip(self.steps, alone.steps)]

    def as_json(self):
        return {"side": self.label, "step_ms": self.steps, "exposed_ms": self.exposed}


def our_sides(options):
    program = f"{options.build}/bin/ddp_trainer"
    return [Side(f"hccl, {mode}", [program, "-g", str(options.ranks), "--mode", mode], our_environment())
            for mode in MODES]


def mpi_sides(options):
    """Returns (side without communication, [sides with MPI_Allreduce])."""
    more = ["--oversubscribe"] if options.ranks > len(os.sched_getaffinity(0)) else []
    argv = ["mpirun", *more, "-np", str(options.ranks), f"{options.build}/bin/mpi_trainer"]
    base = {key: value for key, value in mpi_environment().items() if key != "HCCL_COMM_ID"}
    sides = [Side("Open MPI, default", argv, base), Side("Open MPI, tuned", argv, {**base, **TUNED})]
    for number, name in ALGORITHMS["all_reduce"].items():
        forced = {**base, **TUNED, "OMPI_MCA_coll_tuned_allreduce_algorithm": str(number)}
        sides.append(Side(f"Open MPI, tuned, {name}", argv, forced))
    return Side("no communication", [*argv, "--no-communication"], base), sides


def best_of(sides, model):
    """Runs each side once, briefly. Returns the two sides with the shortest steps, plus the default settings."""
    times = []
    for side in sides:
        progress(f"choosing settings: {side.label}")
        times.append((side.run(model, 2)[0], side))
    times.sort(key=lambda item: item[0])
    chosen = [side for _, side in times[:2]]
    return chosen + [side for side in sides[:1] if side not in chosen]


def ratio(ones, others):
    """Returns the median, over the rounds, of the ratio of `ones` to `others`."""
    return statistics.median(one / other for one, other in zip(ones, others))


class Race:
    """All sides with one size of gradients."""

    def __init__(self, size, ours, theirs, alone):
        self.size, self.ours, self.theirs, self.alone = size, ours, theirs, alone

    @property
    def best(self):
        return min(self.theirs, key=lambda side: statistics.median(side.steps))

    def faster(self, side):
        """Returns two speed-ups over Open MPI's best setting: for the time that communication adds to a step (a ratio
        of medians), and for the exposed communication (a median of ratios)."""
        mine, other = statistics.median(side.added(self.alone)), statistics.median(self.best.added(self.alone))
        return (other / mine if mine > 0 else float("inf")), ratio(self.best.exposed, side.exposed)

    def goals(self):
        """Returns [(text, whether the goal is reached)]."""
        ddp, fast = self.ours[:2]
        name = f"{self.size // MIB} MiB of gradients"
        verdicts = []
        for side in (ddp, fast):
            for what, faster in zip(("the time that communication adds to a step", "exposed communication"), self.faster(side)):
                verdicts.append((f"{name}: {what} is {faster:.2f} times smaller with {side.label} than with "
                                 f"{self.best.label}; must be at least {COMMUNICATION_MUST}", faster >= COMMUNICATION_MUST))
        slower = ratio(ddp.steps, fast.steps)
        verdicts.append((f"{name}: a step of ddp takes {slower:.2f} times as long as one of fast_ddp; must be at most "
                         f"{DDP_MUST}", slower <= DDP_MUST))
        return verdicts

    def show(self, ranks):
        rows = []
        for side in [*self.ours, *sorted(self.theirs, key=lambda side: statistics.median(side.steps))]:
            added, exposed = self.faster(side)
            rows.append([side.label, f"{statistics.median(side.steps):.3g}",
                         f"{statistics.median(side.added(self.alone)):.3g}", f"{statistics.median(side.exposed):.3g}",
                         f"{ratio(side.steps, self.best.steps):.2f}", f"{added:.2f}", f"{exposed:.2f}"])
        rows.append([self.alone.label, f"{statistics.median(self.alone.steps):.3g}", "", "", "", "", ""])
        words = " ".join(word for pair in MODELS[self.size].items() for word in pair)
        return "\n\n".join([
            f"### A training run with {self.size // MIB} MiB of gradients, {ranks} ranks",
            f"`ddp_trainer -g {ranks} {words} --epochs {EPOCHS[self.size]}`",
            table(["side", "step, ms", "added, ms", "exposed, ms", f"step / that of {self.best.label}",
                   "added: times smaller", "exposed: times smaller"], rows)])

    def as_json(self):
        return {"bytes": self.size, "sides": [side.as_json() for side in [*self.ours, *self.theirs, self.alone]]}


def run_race(options, size):
    model, epochs = MODELS[size], EPOCHS[size]
    alone, candidates = mpi_sides(options)
    race = Race(size, our_sides(options), best_of(candidates, model), alone)
    for number in range(options.rounds):
        progress(f"{size // MIB} MiB: round {number + 1} of {options.rounds}")
        for side in rotated([*race.ours, *race.theirs, alone], number):
            side.sample(model, epochs)
    if len({side.weights for side in [*race.ours, *race.theirs]}) > 1:
        sys.exit("bench: the sides ended with different weights")
    return race


def main():
    options = parse_arguments()
    require_built(options.build, ("ddp_trainer", "mpi_trainer"), "./dev bench --trainer")
    if options.write:
        require_section(options.write, "trainer")
    end_on_signals()
    facts = all_facts()
    start = time.monotonic()
    parts, verdicts, samples = [], [], []
    for size in MODELS:
        race = run_race(options, size)
        parts.append(race.show(options.ranks))
        verdicts += race.goals()
        samples.append(race.as_json())
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
