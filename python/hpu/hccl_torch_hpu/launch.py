# SPDX-License-Identifier: Apache-2.0
"""``hccl-hpu``: runs Gaudi programs on emulated devices.

``hccl-hpu run [-n N | --nodes AxB] script.py ...`` runs a script on one device, or on several as torchrun does.
``hccl-hpu shell [command ...]`` runs a command or a shell in which torchrun, mpirun, accelerate launch and other
launchers find the devices. Apart from its help, hccl-hpu itself writes nothing to stdout. It does not affect programs
that are started in any other way.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .launching.devices import require_devices, visible_modules
from .launching.environment import QUIET, difference, environment_of_programs
from .launching.errors import LaunchError
from .launching.installation import find_installation
from .launching.nodes import parse_nodes, run_nodes
from .launching.ranks import run_ranks, standalone

NOTICE = "emulated Gaudi devices, which compute on the CPU; not a product of Intel or Habana"
USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line. Exits with the program's exit code. If the program cannot be started, prints the reason
    in one line and exits with 2. Blocks until the program ends."""
    options = _parser().parse_args(arguments)
    try:
        code = options.command(options)
    except LaunchError as error:
        print(f"hccl-hpu: {error}", file=sys.stderr)
        code = USAGE_ERROR
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hccl-hpu", description="Runs Gaudi programs on emulated devices.")
    commands = parser.add_subparsers(required=True, metavar="run|shell")
    run = commands.add_parser("run", help="run a Python script", description="Runs a Python script on emulated devices.")
    count = run.add_mutually_exclusive_group()
    count.add_argument("-n", dest="processes", type=int, default=1, metavar="N",
                       help="number of processes, one per device (default: 1)")
    count.add_argument("--nodes", metavar="AxB", help="emulate A nodes of B devices each, with one process per device")
    run.add_argument("-m", dest="is_module", action="store_true", help="run a module instead of a file, as python -m does")
    run.add_argument("--verbose", action="store_true",
                     help="print the environment variables that hccl-hpu sets, and torchrun's messages")
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    run.set_defaults(command=_run)
    shell = commands.add_parser("shell", help="run a command or a shell with emulated devices",
                                description="Runs a command or a shell with emulated devices.")
    shell.add_argument("--verbose", action="store_true", help="print the environment variables that hccl-hpu sets")
    shell.add_argument("words", nargs=argparse.REMAINDER, metavar="command")
    shell.set_defaults(command=_shell)
    return parser


def _run(options: argparse.Namespace) -> int:
    """Runs a script, and returns its exit code. For a single process without ``--nodes``, the script replaces this
    process. Raises LaunchError if the script cannot be started."""
    if not options.is_module and not Path(options.script).is_file():
        raise LaunchError(f"the file {options.script} does not exist")
    if options.processes < 1:
        raise LaunchError(f"-n {options.processes}: the number of processes must be at least 1")
    nodes, per_node = parse_nodes(options.nodes) if options.nodes else (1, None)
    require_devices(per_node or options.processes, os.environ, visible_modules(os.environ, per_node))
    variables = _variables(options.verbose, per_node)
    program = (["-m"] if options.is_module else []) + [options.script, *options.arguments]
    if per_node:
        return run_nodes(nodes, per_node, program, variables, options.verbose)
    if options.processes == 1:
        _become([sys.executable, *program], variables)
    os.environ.update(variables)
    return run_ranks(standalone(options.processes), program, verbose=options.verbose)


def _shell(options: argparse.Namespace) -> int:
    """Replaces this process with a command or a shell. Raises LaunchError if the command cannot be run."""
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    _become(words or [os.environ.get("SHELL") or "/bin/sh"], _variables(options.verbose))
    return 0


def _variables(verbose: bool, per_node: int | None = None) -> dict[str, str]:
    variables = environment_of_programs(find_installation(os.environ), os.environ, per_node)
    if os.environ.get(QUIET) != "1":
        print(f"hccl-hpu: {NOTICE}", file=sys.stderr)
    if verbose:
        for line in difference(os.environ, variables):
            print(f"hccl-hpu: {line}", file=sys.stderr)
    return variables


def _become(command: list[str], variables: dict[str, str]) -> None:
    """Replaces this process with a command. Raises LaunchError if the command cannot be run."""
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, variables)
    except OSError as error:
        raise LaunchError(f"cannot run {command[0]}: {error.strerror}") from None


if __name__ == "__main__":
    main()
