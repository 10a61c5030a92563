# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's databases of operations, modules, optimizers and faulty calls on the emulated device.

The entries run in batches in forked processes, so that a crash fails only one entry. Prints the
number of checks for each database, and each failure that is not in the list of exceptions.
Exits with 1 if there is a crash or an unlisted failure, or, without --only, if a listed exception
is no longer needed.
"""
from __future__ import annotations

import argparse
import gc
import importlib
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
_TIME_LIMIT = 600.0  # seconds per batch; a batch takes a few seconds on an idle processor


_DATABASES = ("operations", "modules", "optimizers", "errors")


def _work(database: str, names: list[str], path: str) -> None:
    import torch

    torch.set_num_threads(1)
    module = importlib.import_module(database)
    with open(path, "a", encoding="utf-8") as results:
        for name in names:
            print(json.dumps({"began": name}), file=results, flush=True)
            print(json.dumps({name: module.run(name)}), file=results, flush=True)


def _run_batch(database: str, names: list[str], folder: str) -> dict[str, dict[str, str]]:
    """Runs the entries in a separate process. If the process crashes or exceeds _TIME_LIMIT, runs the
    remaining entries in another process. Returns the outcomes of all entries."""
    outcomes: dict[str, dict[str, str]] = {}
    rest = names
    while rest:
        descriptor, path = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        process = multiprocessing.get_context("fork").Process(target=_work, args=(database, rest, path))
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


def _run_all(database: str, names: list[str], jobs: int) -> dict[str, dict[str, str]]:
    from concurrent.futures import ThreadPoolExecutor

    gc.freeze()  # so that garbage collections do not copy pages in the forked processes
    batches = [names[at:at + _BATCH] for at in range(0, len(names), _BATCH)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda batch: _run_batch(database, batch, folder), batches)
        return {name: checks for result in results for name, checks in result.items()}


def _read_exceptions(database: str) -> set[tuple[str, str]]:
    """Returns the known failures as {(entry, check)}."""
    lines = [line.split("|") for line in _EXCEPTIONS.read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#")]
    return {(line[1].strip(), line[2].strip()) for line in lines if line[0].strip() == database}


def _check(database: str, options: argparse.Namespace) -> bool:
    """Runs a database and prints its failures. Returns whether all outcomes were as expected."""
    begin = time.monotonic()
    names = options.only or importlib.import_module(database).names()
    outcomes = _run_all(database, names, options.jobs)
    counts: Counter[str] = Counter()
    failures = {}
    for name, checks in outcomes.items():
        for check, outcome in checks.items():
            kind = outcome if outcome in ("passed", "none") else "crashed" if check == "crash" else "failed"
            counts[kind] += 1
            if kind in ("failed", "crashed"):
                failures[name, check] = outcome
    exceptions = _read_exceptions(database)
    new = {key: why for key, why in failures.items() if key not in exceptions}
    outdated = [] if options.only else sorted(exceptions - failures.keys())
    for (name, check), why in new.items():
        print(f"failed: {database} | {name} | {check} | {why}")
    for name, check in outdated:
        print(f"passes now, so remove it from {_EXCEPTIONS.name}: {database} | {name} | {check}")
    checked = counts["passed"] + counts["failed"] + counts["crashed"]
    print(f"{database}: {len(names)} entries, {checked} checks, {counts['passed']} passed "
          f"({100 * counts['passed'] / max(checked, 1):.2f} %), {counts['failed']} failed, of which "
          f"{len(failures) - len(new)} are known, {counts['crashed']} crashes, {counts['none']} without samples, "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return not new and not outdated and counts["crashed"] == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("databases", nargs="*", choices=[*_DATABASES, []], help="those to run; all if none is named")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of entries")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    sys.path.insert(0, str(_FOLDER))
    good = [_check(database, options) for database in options.databases or _DATABASES]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
