#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of the gradients' communication between two hosts is not hidden behind computation. Alternates
between two modes of ddp_trainer: ddp, which sends while it computes, and fast_ddp, which sends afterwards.

The hosts are network namespaces, one rank each, joined by a link that a token bucket limits. tests/support/hosts.sh
creates them, which needs root and iproute2. Prints Markdown to standard output and progress to standard error. The
output names the trace files of the last round, which ui.perfetto.dev displays. A run takes one or two minutes."""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import end_on_signals, progress, require_built
from drivers import end_with_parent, our_environment

HOSTS = os.path.join(os.path.dirname(__file__), "../../tests/support/hosts.sh")
MODES = ["ddp", "fast_ddp"]
# 18 MB of gradients in layers of 2.6 MB and buckets of 1 MiB. Only the last large layer's communication has no
# computation to hide behind.
MODEL = ["--hidden", ",".join(["800"] * 8), "--bucket-mib", "1", "--batch", "512", "--micro-batch", "256",
         "--epochs", "2"]
EXPOSED_MUST = 0.5  # maximum exposed communication of ddp, relative to fast_ddp's


def hosts(*words):
    subprocess.run([HOSTS, *words], check=True, stdin=subprocess.DEVNULL)


def train(build, tag, mode):
    """Runs one training. Returns the report on its last epoch and the path of its trace."""
    files = {kind: os.path.abspath(f"{build}/overlap.{mode}.{kind}") for kind in ("json", "trace")}
    ranks = []
    for rank in range(2):
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                     "MASTER_ADDR": "10.213.0.1", "MASTER_PORT": "29500"}
        argv = ["ip", "netns", "exec", f"hccl-{tag}-{rank}", f"{build}/bin/ddp_trainer", "--mode", mode, *MODEL,
                "--json", files["json"], "--trace", files["trace"]]
        ranks.append(subprocess.Popen(argv, env={**our_environment(), **variables}, stdout=subprocess.DEVNULL,
                                      stdin=subprocess.DEVNULL, preexec_fn=end_with_parent))
    statuses = [rank.wait() for rank in ranks]
    if any(statuses):
        sys.exit(f"bench: the ranks of ddp_trainer exited with the statuses {statuses}")
    with open(files["json"], encoding="utf-8") as file:
        return json.load(file)["epochs"][-1], files["trace"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release", help="build tree with the programs (build/release)")
    parser.add_argument("--rate", default="1gbit", help="rate of the link in each direction (1gbit)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (3)")
    parser.add_argument("--check", action="store_true", help="exit 1 if the goal is missed")
    options = parser.parse_args()
    end_on_signals()
    require_built(options.build, ("ddp_trainer",), "./dev bench --overlap")
    possible = subprocess.run([HOSTS, "allowed"], check=False, capture_output=True, text=True)
    if possible.returncode != 0:
        sys.exit(f"bench: {possible.stdout.strip()}")
    tag = f"{os.getpid()}-overlap"
    samples = {mode: [] for mode in MODES}
    traces = {}
    try:
        hosts("up", tag, "2")
        hosts("limit", tag, options.rate)
        for number in range(options.rounds):
            for mode in MODES:
                progress(f"{mode}: round {number + 1} of {options.rounds}")
                epoch, traces[mode] = train(options.build, tag, mode)
                samples[mode].append(epoch)
    finally:
        hosts("down", tag)

    def median(mode, key):
        return statistics.median(epoch[key] for epoch in samples[mode])

    print(f"Two hosts with one rank each, connected at {options.rate}: `ddp_trainer {' '.join(MODEL)}`\n")
    print("| mode | step, ms | communication exposed, ms | trace of rank 0 |\n|---|---|---|---|")
    for mode in MODES:
        print(f"| {mode} | {median(mode, 'step_ms'):.0f} | {median(mode, 'communication_ms'):.1f} | {traces[mode]} |")
    share = statistics.median(ddp["communication_ms"] / fast["communication_ms"]
                              for ddp, fast in zip(samples["ddp"], samples["fast_ddp"]))
    reached = share <= EXPOSED_MUST
    print(f"\n- {'reached' if reached else 'MISSED'}: ddp exposes {share:.2f} times as much communication as fast_ddp; "
          f"must be at most {EXPOSED_MUST}")
    sys.exit(1 if options.check and not reached else 0)


if __name__ == "__main__":
    main()
