# SPDX-License-Identifier: Apache-2.0
"""The common parts of the reports of ./dev bench and ./dev micro: tables, facts about the machine, their place in a document."""
import os
import platform
import subprocess
import sys


def table(columns, rows):
    """Markdown of a table; a row is a list of cells, all of them texts."""
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
    """Its name, and its family and model where there are such: a virtual machine's processor may have a bare name."""
    name, family, model = (read_field("/proc/cpuinfo", field) for field in ("model name", "cpu family", "model\t"))
    return name if family == "unknown" else f"{name} (family {family}, model {model})"


def machine_facts():
    git = ("git", "-C", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    revision = output_of(*git, "describe", "--always")
    if output_of(*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"):
        revision += "-dirty"  # not for the page that an earlier report was written to
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": read_field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
        "revision": revision or "unknown",
    }


def show_run(facts, command, seconds, programs=""):
    """Two lines: what was run, and where; `programs` names others that took part."""
    return "\n".join([
        f"Command: `{command}` at {facts['revision']}, {seconds / 60:.1f} minutes.",
        f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['memory']}, Linux {facts['kernel']}; "
        f"{programs}load average before the run {facts['load']:.2f}."])


def shown_arguments(arguments, hidden):
    """The command as a reader would repeat it: without the options in `hidden` and their values."""
    shown = []
    for before, argument in zip([""] + arguments, arguments):
        if before not in hidden and argument.split("=")[0] not in hidden:
            shown.append(argument)
    return shown


def around_section(path, name):
    """Returns the text before and after the results of section `name`; raises OSError, or ValueError where it is not."""
    begin, end = f"<!-- {name}: begin of what the command writes -->", f"<!-- {name}: end -->"
    with open(path, encoding="utf-8") as file:
        before, found, rest = file.read().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{path} lacks the lines '{begin}' and '{end}', between which the results go")
    return before + begin, end + after


def write_section(path, name, parts):
    before, after = around_section(path, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join([before, *parts, after]))


def require_section(path, name):
    """Before the measurement, not after it: ends the program where the results could not be written."""
    try:
        around_section(path, name)
    except (OSError, ValueError) as error:
        sys.exit(f"{name}: {error}")
