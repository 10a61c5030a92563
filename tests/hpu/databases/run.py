# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's databases of operations on the emulated device: ``python run.py [--only NAME...] [--write-failures FILE]``.

Every operation runs in a forked process with a few others, so that a crash is the failure of one. Prints the counts of
checks by kind, and each failure that the list of exceptions does not have. Exits with 1 if there are any, or if an
exception is no longer needed.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_EXCEPTIONS = _FOLDER / "exceptions.txt"
_BATCH = 15
_TIME_LIMIT = 170.0  # seconds for a batch


def _work(names: list[str], path: str) -> None:
    import torch
    from operations import CHECKS, run

    torch.set_num_threads(1)
    with open(path, "a", encoding="utf-8") as results:
        for name in names:
            print(json.dumps({"began": name}), file=results, flush=True)
            print(json.dumps({name: run(name, CHECKS)}), file=results, flush=True)


def _run_batch(names: list[str], folder: str) -> dict[str, dict[str, str]]:
    """Returns the outcomes of operations, run in a process of their own; goes on behind one that crashes."""
    outcomes: dict[str, dict[str, str]] = {}
    rest = names
    while rest:
        descriptor, path = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        process = multiprocessing.get_context("fork").Process(target=_work, args=(rest, path))
        process.start()
        process.join(_TIME_LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
        last = None
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            last = entry.pop("began", last)
            outcomes.update(entry)
        if process.exitcode == 0:
            break
        crashed = last if last is not None and last not in outcomes else rest[0]
        outcomes.setdefault(crashed, {"crash": f"the process ended with {process.exitcode}"})
        rest = [name for name in rest if name not in outcomes]
    return outcomes


def _run_all(names: list[str], jobs: int) -> dict[str, dict[str, str]]:
    from concurrent.futures import ThreadPoolExecutor

    batches = [names[at:at + _BATCH] for at in range(0, len(names), _BATCH)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda batch: _run_batch(batch, folder), batches)
        return {name: checks for result in results for name, checks in result.items()}


def _read_exceptions() -> set[tuple[str, str]]:
    lines = _EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    return {tuple(part.strip() for part in line.split("|")[:2]) for line in lines if line and not line.startswith("#")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of operations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write-failures", metavar="FILE", help="also write all failures there")
    options = parser.parse_args()
    begin = time.monotonic()
    sys.path.insert(0, str(_FOLDER))
    from operations import OPERATIONS

    names = options.only or list(OPERATIONS)
    outcomes = _run_all(names, options.jobs)
    counts = Counter()
    failures = {}
    for name in names:
        for check, outcome in outcomes[name].items():
            kind = outcome if outcome in ("passed", "none") else "crashed" if check == "crash" else "failed"
            counts[kind] += 1
            if kind in ("failed", "crashed"):
                failures[name, check] = outcome
    if options.write_failures:
        text = "".join(f"{name} | {check} | {why}\n" for (name, check), why in failures.items())
        Path(options.write_failures).write_text(text, encoding="utf-8")
    exceptions = _read_exceptions()
    new = {key: why for key, why in failures.items() if key not in exceptions}
    outdated = [] if options.only else sorted(exceptions - failures.keys())
    for (name, check), why in new.items():
        print(f"failed: {name} | {check} | {why}")
    for name, check in outdated:
        print(f"passes now, so remove it from {_EXCEPTIONS.name}: {name} | {check}")
    checked = counts["passed"] + counts["failed"] + counts["crashed"]
    print(f"operations: {len(names)}, checks: {checked}, passed: {counts['passed']} "
          f"({100 * counts['passed'] / max(checked, 1):.2f} %), failed: {counts['failed']}, of which expected: "
          f"{len(failures) - len(new)}, crashes: {counts['crashed']}, without samples: {counts['none']}, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if new or outdated or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
