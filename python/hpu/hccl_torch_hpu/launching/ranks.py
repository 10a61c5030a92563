# SPDX-License-Identifier: Apache-2.0
"""Runs a program's processes on this machine with PyTorch's own launcher.

``python -m hccl_torch_hpu.launching.ranks PARENT PREFIX verbose|terse COUNT OPTIONS PROGRAM`` runs one of several
emulated nodes, and ends when the process PARENT ends. PREFIX begins its lines on stderr. COUNT is the number of
OPTIONS, which are passed to torchrun.
"""
from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import tempfile

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
SIGNALLED = 128  # as in a shell, the exit code after a signal is this value plus the signal's number
PR_SET_PDEATHSIG = 1


def standalone(processes: int) -> list[str]:
    """Returns torchrun's options for starting this many processes on one machine."""
    return ["--standalone", "--nproc-per-node", str(processes)]


def run_ranks(options: list[str], program: list[str], prefix: str = "hccl-hpu", verbose: bool = False) -> int:
    """Runs a program's processes with this process's environment, and reports on stderr the first process that fails.

    Blocks until all processes have ended. If one fails, ends the others.

    Args:
        options: torchrun's options, such as those that ``standalone`` returns.
        program: the script with its arguments, or ``-m``, a module and its arguments.
        prefix: the beginning of lines on stderr.
        verbose: whether torchrun's own messages are printed as well.

    Returns:
        The exit code of the first process that failed, or 0. If a signal ended that process or
        interrupted this one, 128 plus the signal's number.
    """
    launcher, errors = _torchrun()
    if not verbose:
        logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="hccl-hpu-") as folder:
        try:
            launcher.run(launcher.parse_args([*options, "--log-dir", folder, *program]))
            return 0
        except errors.ChildFailedError as error:
            rank, failure = error.get_first_failure()
            return _tell(prefix, rank, failure.exitcode)
        except launcher_signal() as error:
            return SIGNALLED + error.sigval
        except KeyboardInterrupt:
            return SIGNALLED + signal.SIGINT


def _torchrun():
    """Imports PyTorch's launcher without loading the device, which only the launched processes need."""
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        import torch.distributed.run as launcher
        from torch.distributed.elastic.multiprocessing import errors
    finally:
        if before is None:
            del os.environ[AUTOLOAD]
        else:
            os.environ[AUTOLOAD] = before
    return launcher, errors


def launcher_signal() -> type[BaseException]:
    from torch.distributed.elastic.multiprocessing.api import SignalException

    return SignalException


def _tell(prefix: str, rank: int, code: int) -> int:
    if code >= 0:
        print(f"{prefix}: rank {rank} has ended with exit code {code}", file=sys.stderr)
        return code
    name = signal.Signals(-code).name
    print(f"{prefix}: rank {rank} has been terminated by {name}", file=sys.stderr)
    return SIGNALLED - code


def end_with(parent: int) -> None:
    """Makes this process receive SIGTERM when its parent ends. Exits at once if the parent has already ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(SIGNALLED + signal.SIGTERM)


def main() -> None:
    parent, prefix, verbose, count, *rest = sys.argv[1:]
    end_with(int(parent))
    sys.exit(run_ranks(rest[:int(count)], rest[int(count):], prefix, verbose == "verbose"))


if __name__ == "__main__":
    main()
