#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the PyTorch backends hccl and gloo: collectives on tensors in three kinds of memory, and training steps.

Prints Markdown to standard output and progress to standard error. A run takes about 30 minutes, four with --quick.
With --from, it measures nothing and shows the results that --json wrote in an earlier run."""
import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, parse_list, parse_size, progress, warn_of_load
from drivers import end_with_parent
from torch_plot import cells_of, median_ratio, write_plot

FOLDER = os.path.dirname(os.path.abspath(__file__))
SIZES = [1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
SIDES = {"plain": "plain tensor", "bucket": "DDP's bucket", "allocator": "allocator"}


def run_ranks(ranks, program, *arguments):
    """Runs a program from this folder under torchrun, and returns its output."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HCCL_", "DDP_"))}
    if "hpu" in arguments:
        variables["HCCL_EMU_HPU"] = "1"
    variables |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "HCCL_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
                           os.path.join(FOLDER, program), *arguments], env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {program} on {ranks} ranks exited with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def race(options):
    samples = []
    for ranks in options.ranks:
        progress(f"collectives, {ranks} ranks")
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            run_ranks(ranks, "torch_collectives.py", "--sizes", ",".join(map(str, options.sizes)), "--rounds",
                      str(options.rounds), "--seconds", str(options.seconds), "--json", file.name)
            samples += json.load(file)
    return samples


def show_time(us):
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def show_size(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def show_race(samples):
    cells = cells_of(samples)
    print("| collective | ranks | size | gloo | " + " | ".join(SIDES.values()) + " |")
    print("|---|---|---|---|" + "---|" * len(SIDES))
    for (collective, ranks, size), cell in cells.items():
        columns = [f"{show_time(statistics.median(cell[side]))} ({median_ratio(cell, side):.3g})" for side in SIDES]
        print(f"| {collective} | {ranks} | {show_size(size)} | {show_time(statistics.median(cell['gloo']))} | "
              + " | ".join(columns) + " |")
    for side, name in SIDES.items():
        least = min(cells, key=lambda key: median_ratio(cells[key], side))
        print(f"\nLowest ratio of {name}: {median_ratio(cells[least], side):.3g} times as fast as gloo "
              f"({least[0]}, {least[1]} ranks, {show_size(least[2])}).", end="")
    print()


def train(options):
    """Returns {training: {side: [the results of each round]}}."""
    sides = {"gloo": ["--backend", "gloo"], "hccl": ["--backend", "hccl"],
             "hccl, allocator": ["--backend", "hccl", "--allocator"]}
    if importlib.util.find_spec("hccl_torch_hpu"):
        sides["hccl, emulated hpu"] = ["--backend", "hccl", "--device", "hpu"]
    trainings = [(model, mode, ranks) for model in options.models for mode in ("ddp", "fsdp") for ranks in options.train_ranks]
    results = {}
    for number in range(options.rounds):
        for model, mode, ranks in trainings:
            for side, arguments in sides.items():
                progress(f"{mode}, {model}, {ranks} ranks, {side}, round {number + 1} of {options.rounds}")
                steps = options.steps if model == "34 MB" else max(options.steps // 4, 3)
                output = run_ranks(ranks, "torch_training.py", "--model", model, "--mode", mode, "--steps", str(steps),
                                   *arguments)
                results.setdefault((model, mode, ranks), {}).setdefault(side, []).append(json.loads(output.splitlines()[-1]))
    return results


def show_training(results):
    print("| model | mode | ranks | side | step | of which computation | relative to gloo |\n|---|---|---|---|---|---|---|")
    for (model, mode, ranks), sides in results.items():
        for side, rounds in sides.items():
            together = statistics.median(one["together_ms"] for one in rounds)
            alone = statistics.median(one["alone_ms"] for one in rounds)
            ratio = statistics.median(one["together_ms"] / gloo["together_ms"] for one, gloo in zip(rounds, sides["gloo"]))
            print(f"| {model} | {mode} | {ranks} | {side} | {together:.1f} ms | {alone:.1f} ms | {ratio:.2f} |")


def measured(options):
    """Measures everything. Returns the contents of the --json file: facts about the run, samples of the collectives,
    and times of the trainings."""
    facts = {"load": os.getloadavg()[0], "cores": os.cpu_count(), "machine": platform.machine(), "rounds": options.rounds}
    warn_of_load(facts)
    samples = race(options) if options.only != "training" else []
    trained = train(options) if options.only != "collectives" else {}
    return {"facts": facts, "samples": samples,
            "training": [{"model": key[0], "mode": key[1], "ranks": key[2], "sides": value} for key, value in trained.items()]}


def show(run):
    facts, samples = run["facts"], run["samples"]
    print(f"{facts['cores']} cores ({facts.get('machine', 'unknown')}), load average {facts['load']:.1f} at the start, "
          f"{facts.get('rounds', 'some')} rounds. In parentheses: how many times as fast as gloo, the median of the ratios "
          "within a round.\n")
    if samples:
        show_race(samples)
    if run["training"]:
        print()
        show_training({(one["model"], one["mode"], one["ranks"]): one["sides"] for one in run["training"]})


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=parse_list(int), default=[2, 4, 8], help="numbers of ranks for the collectives (2,4,8)")
    parser.add_argument("--train-ranks", type=parse_list(int), default=[2, 4], help="numbers of ranks for training (2,4)")
    parser.add_argument("--sizes", type=parse_list(parse_size), default=SIZES,
                        help="tensor sizes of the collectives (1K to 64M)")
    parser.add_argument("--models", type=parse_list(str), default=["34 MB", "400 MB"],
                        help="models to train, named by the size of their parameters (34 MB,400 MB)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="steps per training and round (20)")
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds of calls per cell and round (0.1)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, sizes and ranks, and the smaller model")
    parser.add_argument("--only", choices=("collectives", "training"))
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    parser.add_argument("--from", dest="source", metavar="FILE", help="measure nothing, and show the results that --json wrote")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the collectives' speed-up over gloo")
    options = parser.parse_args()
    if options.plot and options.only == "training":
        parser.error("--plot draws collectives, which --only training leaves out")
    if options.quick:
        options.rounds, options.ranks, options.train_ranks, options.models = 3, [2, 4], [2], ["34 MB"]
        options.sizes, options.steps, options.seconds = [1 << 10, 64 << 10, 1 << 20, 16 << 20], 10, 0.05
    return options


def main():
    options = parse()
    end_on_signals()
    if options.source:
        with open(options.source, encoding="utf-8") as file:
            run = json.load(file)
    else:
        run = measured(options)
    show(run)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(run, file)
    if options.plot:
        if not run["samples"]:
            sys.exit(f"bench: {options.source} has no collectives to draw")
        write_plot(options.plot, run["samples"])


if __name__ == "__main__":
    main()
