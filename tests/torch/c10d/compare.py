# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of distributed backends with two setups, and compares the outcomes.

The setups are gloo and hccl. With ``--device hpu``, they are hccl with tensors on the CPU and hccl with tensors on the
emulated device. Prints a table of the counts, the reasons for skipped tests, and the tests that differ. Exits with 1
if a test passes with the first setup and fails with the second.
"""
import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


class Setup(collections.namedtuple("Setup", ["backend", "device"])):
    """A backend, and the device of the tests' tensors."""

    def __str__(self) -> str:
        return self.backend if self.device == "cpu" else f"{self.backend} on {self.device}"


def setups_for(device: str) -> tuple[Setup, Setup]:
    """Returns the two setups to compare."""
    return (Setup("gloo" if device == "cpu" else "hccl", "cpu"), Setup("hccl", device))


class Outcome(collections.namedtuple("Outcome", ["kind", "reason"])):
    """The outcome of a test, "passed", "failed" or "skipped", and its reason."""


def outcome_of(case: ElementTree.Element) -> Outcome:
    for kind, tag in (("failed", "failure"), ("failed", "error"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            return Outcome(kind, (found.get("message") or "").splitlines()[0][:160])
    return Outcome("passed", "")


def run_suite(setup: Setup, ranks: int, options: argparse.Namespace) -> dict[str, Outcome]:
    """Runs the suite. Returns the outcome of each test by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("barrier", "test_dir", "init_dir"):
            (Path(folder) / name).mkdir()
        report = options.keep / f"{setup.backend}-{setup.device}-{ranks}.xml"
        variables = os.environ | {"BACKEND": setup.backend, "WORLD_SIZE": str(ranks), "TEMP_DIR": folder, "OMP_NUM_THREADS": "1",
                                  "GLOO_SOCKET_IFNAME": "lo", "HCCL_SOCKET_IFNAME": "lo",
                                  "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(options.seconds)}
        if setup.device == "hpu":
            variables |= {"C10D_DEVICE": "hpu", "HCCL_EMU_HPU": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / "cases.py"),
                   f"--junitxml={report}", *(["-k", options.select] if options.select else [])]
        with open(options.keep / f"{setup.backend}-{setup.device}-{ranks}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(command, env=variables, stdout=log, stderr=subprocess.STDOUT, cwd=FOLDER,
                                       start_new_session=True)
            try:
                process.wait(timeout=300 * options.seconds)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    return {case.get("name"): outcome_of(case) for case in ElementTree.parse(report).getroot().iter("testcase")}


def print_reasons(outcomes: dict[str, Outcome]) -> None:
    reasons = collections.Counter(one.reason for one in outcomes.values() if one.kind == "skipped")
    for reason, count in reasons.most_common():
        print(f"- {count}: {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--device", choices=("cpu", "hpu"), default="cpu")
    parser.add_argument("-k", dest="select", default="", help="only tests that match, as for pytest")
    parser.add_argument("--seconds", type=int, default=120, help="for each test")
    parser.add_argument("--keep", type=Path, default=Path("build/c10d"), help="folder for logs and reports")
    options = parser.parse_args()
    options.keep = options.keep.resolve()
    options.keep.mkdir(parents=True, exist_ok=True)
    first, second = setups = setups_for(options.device)
    outcomes = {(setup, ranks): run_suite(setup, ranks, options) for ranks in options.ranks for setup in setups}

    print("| backend | ranks | passed | failed | skipped |\n|---|---|---|---|---|")
    for (setup, ranks), one in outcomes.items():
        counts = collections.Counter(outcome.kind for outcome in one.values())
        print(f"| {setup} | {ranks} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    worse = 0
    for ranks in options.ranks:
        before, after = outcomes[first, ranks], outcomes[second, ranks]
        print(f"\nTests with {ranks} ranks whose outcomes differ:")
        for name in sorted(after):
            if before[name].kind != after[name].kind:
                print(f"- {name}: {first} {before[name].kind}, {second} {after[name].kind} {after[name].reason}")
                worse += before[name].kind == "passed" and after[name].kind == "failed"
    for setup in setups:
        print(f"\nSkipped with {setup}, {options.ranks[0]} ranks:")
        print_reasons(outcomes[setup, options.ranks[0]])
    print(f"\n{worse or 'no'} test{'' if worse == 1 else 's'} failed with {second} that passed with {first}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
