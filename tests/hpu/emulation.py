# SPDX-License-Identifier: Apache-2.0
"""Runs programs under hccl-hpu, and compares their reports."""
import functools
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from launcher import Program, environment, run

SCRIPTS = Path(__file__).resolve().parent / "scripts"
HCCL_HPU = str(Path(sys.executable).with_name("hccl-hpu"))
LIMIT = 300  # seconds per program, spent mostly on imports
EXACT = 1e-5
BF16 = 1e-2


@dataclass
class Ended:
    """The exit code and the output of a program."""

    code: int
    output: str
    errors: str


def private(folder: Path) -> dict[str, str]:
    """Returns variables that keep programs off the network and out of the home folder."""
    return {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "huggingface"), "TOKENIZERS_PARALLELISM": "false",
            "XDG_CACHE_HOME": str(folder / "cache"), "HCCL_EMU_HPU_QUIET": "1"}


def hccl_hpu(*words: str, folder: Path, seconds: float = LIMIT, code: int | None = 0, **variables: str) -> str:
    """Runs ``hccl-hpu words...``. Returns its output. Fails the test unless the command exits in
    time with this code (None: any code)."""
    return run([HCCL_HPU, *words], seconds=seconds, code=code, **(private(folder) | variables))


def hccl_hpu_apart(*words: str, folder: Path, seconds: float = LIMIT, command: tuple[str, ...] = (HCCL_HPU,),
                   **variables: str) -> Ended:
    """Runs ``hccl-hpu words...``. Returns its exit code, stdout and stderr."""
    named = private(folder) | {"HCCL_EMU_HPU_QUIET": "0"} | variables
    program = Program.__new__(Program)
    program.process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=environment(**named), cwd=folder, start_new_session=True)
    try:
        output, errors = program.process.communicate(timeout=seconds)
    finally:
        program.kill()
    return Ended(program.process.returncode, output, errors)


def one_after_another(*programs: tuple[str, ...]) -> list[str]:
    """Returns the command that runs several programs in one process. Each program is a tuple of its
    path and arguments."""
    words = [str(SCRIPTS / "several.py")]
    for program in programs:
        words += [*program, "+"]
    return words[:-1]


@functools.cache
def alone(*words: str) -> dict:
    """Runs a script in one process on the CPU, without an emulated device. Returns its report and
    caches it.

    Args:
        words: the script and its arguments; ``{folder}`` stands for a temporary folder.
    """
    report, = all_alone(words)
    return report


@functools.cache
def all_alone(*programs: tuple[str, ...]) -> list[dict]:
    """Runs several programs in order in one process on the CPU, without an emulated device. Returns
    their reports and caches them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *[word.replace("{folder}", folder) for word in one_after_another(*programs)]]
        return reports_of(run(command, seconds=LIMIT, ACCELERATE_USE_CPU="1", **private(Path(folder))), len(programs))


def reports_of(output: str, count: int) -> list[dict]:
    """Reads the reports of ``count`` programs from the files that ``common.report`` has written,
    and deletes the files."""
    files = [Path(name) for name in re.findall(r"REPORT (\S+/report-\w+\.json)", output)]
    assert len(files) == count, output
    reports = [json.loads(file.read_text()) for file in files]
    for file in files:
        file.unlink()
    return reports


def report_of(output: str) -> dict:
    """Returns the report of one program."""
    return reports_of(output, 1)[0]


def require_same_training(found: dict, expected: dict, tolerance: float = EXACT) -> None:
    """Requires equal losses in every step, and equal final weights, within ``tolerance``."""
    assert len(found["losses"]) == len(expected["losses"]) > 1, (found["losses"], expected["losses"])
    for mine, theirs in zip(found["losses"], expected["losses"]):
        assert abs(mine - theirs) <= tolerance, (found["losses"], expected["losses"])
    assert len(set(expected["losses"])) > 1, expected["losses"]
    assert len(found["weights"]) == len(expected["weights"])
    largest = max(abs(mine - theirs) for mine, theirs in zip(found["weights"], expected["weights"]))
    assert largest <= tolerance, largest
