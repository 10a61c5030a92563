# SPDX-License-Identifier: Apache-2.0
"""Parts shared by the commands in this folder: parsing option values, progress on standard error, and signals."""
import argparse
import os
import signal
import sys

SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text):
    unit = SUFFIXES.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdigit() or int(digits) * unit % 4 != 0 or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text}: expected a multiple of 4 such as 8, 32K or 16M")
    return int(digits) * unit


def parse_list(convert):
    return lambda text: [convert(part) for part in text.split(",")]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def warn_of_load(facts):
    if facts["load"] > facts["cores"] / 4:
        progress(f"the machine is not idle (load average {facts['load']:.1f}): expect noise")


def is_built(build, program):
    return os.access(f"{build}/bin/{program}", os.X_OK)


def require_built(build, programs, command, reason=""):
    for program in programs:
        if not is_built(build, program):
            sys.exit(f"bench: {build}/bin/{program} is missing{reason}. Run: {command}")


def end_on_signals():
    """Converts signals into SystemExit, so that the program ends the processes that it has started."""
    def stop(number, _):
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
