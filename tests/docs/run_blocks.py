#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ```console blocks of a document and compares their output with the documented output.

Usage: run_blocks.py <document> <source tree> <prefix of an install tree> [<build tree>]

All blocks of a document run in one shell, with PREFIX set, in a new folder that contains only the
build tree as build/release and a copy of the source tree's examples. A line that begins with
"$ " is a command, one that begins with "> " continues it, and all other lines are its output,
including stderr. The order of lines is ignored, because the order of the ranks' output varies.
Process ids and this host's name are not compared, and a line "..." stands for any number of lines.
Every command must succeed. Ports of 127.0.0.1 are replaced by free ones. Commands that clone, build
or test the project itself (git clone, ./dev, cmake with a preset) are not run.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

TIME_LIMIT = 100
WHOLE_PROJECT = re.compile(r"git clone |\./dev |cmake (--preset|--build --preset) ")
END = "==== end of command"


def commands(document):
    """Returns [(line number, command, expected lines)] for the commands of all console blocks, except those that
    WHOLE_PROJECT matches."""
    found, inside = [], False
    for number, line in enumerate(document.splitlines(), 1):
        if line.startswith("```"):
            inside = line.strip() == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside and line.startswith("> ") and found and not found[-1][2]:
            number, command, expected = found[-1]
            found[-1] = (number, command + "\n" + line[2:], expected)
        elif inside:
            if not found:
                raise SystemExit(f"line {number}: output without a command")
            found[-1][2].append(line)
    return [(number, command, expected) for number, command, expected in found if not WHOLE_PROJECT.match(command)]


def with_free_ports(text):
    ports = {}
    for port in re.findall(r"(?<=127\.0\.0\.1:)\d+", text):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports.setdefault(port, str(probe.getsockname()[1]))
    return re.sub(r"(?<=127\.0\.0\.1:)\d+", lambda match: ports[match.group(0)], text)


def script(all_commands):
    return with_free_ports("".join(f"{command}\nstatus=$?; echo; echo '{END}' $status\n" for _, command, _ in all_commands))


def run(text, folder, prefix):
    """Runs the commands. Returns the output and the exit status of each command that has ended. Raises SystemExit if
    they take longer than TIME_LIMIT seconds."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("HCCL_", "LOG_LEVEL_", "LD_LIBRARY_PATH", "OMPI_", "PRTE_"))}
    environment.update(PREFIX=str(prefix), LC_ALL="C.UTF-8")
    shell = subprocess.Popen(["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = shell.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        output, _ = shell.communicate()
        print(output)
        raise SystemExit(f"not finished after {TIME_LIMIT} s") from None
    parts = re.split(rf"^{END} (\d+)\n", output, flags=re.M)
    return [(part, int(status)) for part, status in zip(parts[0::2], parts[1::2])]


def comparable(line):
    for name in sorted({socket.gethostname(), socket.gethostname().split(".")[0]}, key=len, reverse=True):
        line = re.sub(rf"(\bhost |\bhccl [A-Z]+ ){re.escape(name)}(?=[,:) ])", r"\1box", line)
    line = re.sub(r"(\bpid |\bhccl [A-Z]+ box:)\d+", r"\1N", line)
    return re.sub(r"\s+", " ", line).strip()


def differences(expected, output):
    wanted = sorted(comparable(line) for line in expected if line.strip() and line.strip() != "...")
    printed = sorted(comparable(line) for line in output.splitlines() if line.strip())
    rest = list(printed)
    for line in wanted:
        if line in rest:
            rest.remove(line)
        else:
            yield f"did not print: {line}"
    if not any(line.strip() == "..." for line in expected):
        yield from (f"unexpected output: {line}" for line in rest)


def main():
    document, source, prefix, *build = (Path(argument).resolve() for argument in sys.argv[1:])
    all_commands = commands(document.read_text())
    if not all_commands:
        raise SystemExit(f"{document}: no ```console block")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(source / "examples", Path(folder) / "examples")
        if build:
            (Path(folder) / "build").mkdir()
            (Path(folder) / "build/release").symlink_to(build[0])
        results = run(script(all_commands), folder, prefix)
    wrong = 0
    for index, (number, command, expected) in enumerate(all_commands):
        output, status = results[index] if index < len(results) else ("", 1)
        found = [f"exit status {status}"] if status else []
        found += differences(expected, output)
        wrong += bool(found)
        if found:
            print(f"{document}:{number}: {command}", *found, "output was:", output, sep="\n  ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
