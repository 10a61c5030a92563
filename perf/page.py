# SPDX-License-Identifier: Apache-2.0
"""Parts shared by the reports of ./dev bench and ./dev micro: tables, facts about the machine, and document
sections."""
import os
import platform
import subprocess
import sys


def table(columns, rows):
    """Returns a table in Markdown. A row is a list of strings."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def output_of(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def read_field(path, field):
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(field):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def processor():
    """Returns the processor's name. Adds the family and model if known, because the name in a virtual machine may be
    generic."""
    name, family, model = (read_field("/proc/cpuinfo", field) for field in ("model name", "cpu family", "model\t"))
    return name if family == "unknown" else f"{name} (family {family}, model {model})"


def machine_facts():
    git = ("git", "-C", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    revision = output_of(*git, "describe", "--always")
    if output_of(*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"):
        revision += "-dirty"  # ignores docs, which an earlier report may have changed
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": read_field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
        "revision": revision or "unknown",
    }


def show_run(facts, command, seconds, programs=""):
    """Returns two lines: the command and the machine. `programs` describes the programs that hccl was compared with."""
    return "\n".join([
        f"Command: `{command}` at {facts['revision']}, {seconds / 60:.1f} minutes.",
        f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['memory']}, Linux {facts['kernel']}; "
        f"{programs}load average before the run {facts['load']:.2f}."])


def shown_arguments(arguments, hidden):
    """Returns `arguments` without the options in `hidden` and their values, so that a reader can repeat the run."""
    shown = []
    for before, argument in zip([""] + arguments, arguments):
        if before not in hidden and argument.split("=")[0] not in hidden:
            shown.append(argument)
    return shown


def around_section(path, name):
    """Returns the file's text before and after the results in section `name`. Raises OSError, or ValueError if
    the file has no such section."""
    begin, end = f"<!-- {name}: begin of what the command writes -->", f"<!-- {name}: end -->"
    with open(path, encoding="utf-8") as file:
        before, found, rest = file.read().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{path} lacks the lines '{begin}' and '{end}' around the results; add them")
    return before + begin, end + after


def write_section(path, name, parts):
    before, after = around_section(path, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join([before, *parts, after]))


def require_section(path, name):
    """Ends the program if the file has no section `name`. Call this before the measurement."""
    try:
        around_section(path, name)
    except (OSError, ValueError) as error:
        sys.exit(f"{name}: {error}")
