#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzz targets with libFuzzer: measures what their corpora reach, then searches for inputs that reach more.

Fails if an input crashes a target, or if a corpus reaches clearly less code than coverage.json says.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RECORD = FOLDER / "coverage.json"
# Compilers of different versions divide the same code into slightly different numbers of edges.
TOLERANCE = 0.9
SECONDS_PER_INPUT = 60
MEBIBYTES = 2048  # libFuzzer ends a target that uses more memory


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="names of folders in tests/fuzz/corpus (all)")
    parser.add_argument("--seconds", type=int, default=3, metavar="N",
                        help="how long to fuzz each target (3); 0: only run the corpora")
    parser.add_argument("--record", action="store_true", help="write what the corpora reach to coverage.json")
    parser.add_argument("--build", type=Path, default=Path("build/fuzz"), help="build tree (build/fuzz)")
    options = parser.parse_args()
    known = sorted(corpus.name for corpus in (FOLDER / "corpus").iterdir())
    for target in options.targets:
        if target not in known:
            parser.error(f"unknown target {target}; choose from {', '.join(known)}")
    options.targets = options.targets or known
    return options


def run(build, target, *arguments):
    """Runs a target and returns (whether it succeeded, its output)."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run([build / "fuzz" / f"{target}_fuzz", f"-timeout={SECONDS_PER_INPUT}",
                           f"-rss_limit_mb={MEBIBYTES}", *arguments], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, done.stdout.decode(errors="replace")


def edges(output):
    """Returns the number of edges that libFuzzer has reported last."""
    return int(re.findall(r"\bcov: (\d+)", output)[-1])


def fuzz(options, target, least):
    """Fuzzes one target and returns (the number of edges that its corpus reaches, a list of problems)."""
    corpus = FOLDER / "corpus" / target
    works, output = run(options.build, target, "-runs=0", corpus)
    if not works:
        return 0, [f"{target}: an input of its corpus fails:\n{output[-4000:]}"]
    reached = edges(output)
    problems = []
    if reached < least * TOLERANCE and not options.record:
        problems.append(f"{target}: its corpus reaches {reached} edges, but coverage.json says {least}; extend the corpus")
    row = f"{target:20} {len(list(corpus.iterdir())):6} {reached:8}"
    if options.seconds == 0:
        print(row, flush=True)
        return reached, problems
    found = options.build / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    before = len(list(found.iterdir()))
    works, output = run(options.build, target, f"-max_total_time={options.seconds}",
                        f"-artifact_prefix={options.build / 'crash-'}{target}-", found, corpus)
    if not works:
        problems.append(f"{target}: an input fails:\n{output[-4000:]}")
        return reached, problems
    runs = re.findall(r"#(\d+)", output)[-1]
    print(f"{row} {edges(output):8} {runs:>10} {len(list(found.iterdir())) - before:6}", flush=True)
    return reached, problems


def main():
    options = parse_arguments()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    print("target               corpus    edges" + ("    after       runs    new" if options.seconds else ""))
    problems = []
    for target in options.targets:
        reached, found = fuzz(options, target, record.get(target, 0))
        if target not in record and not options.record:
            problems.append(f"{target}: coverage.json does not mention it; run ./dev fuzz --record")
        record[target] = reached
        problems += found
    if options.record and not problems:
        RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
