# SPDX-License-Identifier: Apache-2.0
"""docs/reference/algorithms.md: the catalogue's names and bounds, and what the builders' files say of themselves. None where there
is no catalogue."""
import re
import textwrap
from pathlib import Path

FOLDER = Path("src/algorithms")
CATALOGUE = FOLDER / "catalogue.cpp"
BEGIN = """\
<!-- Made by docs/generate.py of src/algorithms. Do not edit: change the catalogue or a file's head, then ./dev format. -->
# Algorithms between ranks

The most that a rank does in each channel: the tests prove these bounds for every algorithm and every number of ranks (`./dev
test -R algorithms`). [Schedules](../explanation/schedules.md) says what is proved, and how.

- **n** is the number of ranks, **log n** its logarithm to base 2, rounded up, and **m** the number of chunks that a
  pipelined algorithm cuts its message in.
- **steps** follow each other; the transfers of one progress together. **hops** are transfers that wait for each other: the
  number of latencies. A chain has one step, in which a slice makes n - 1 hops.
- **sent** and **received** are multiples of the channel's part of the message; of an all_gather, reduce_scatter or
  all_to_all, of one rank's part.
- **peers** are the ranks that it exchanges data with.
"""
COLUMNS = ("steps", "hops", "sent", "received", "peers")
ROW = re.compile(r'Algorithm\{\s*"(\w+)",\s*Collective::(\w+),\s*(\w+),\s*(\w+)(?:,\s*\w+)?\}')
BOUND = re.compile(r"^Bound (\w+)\(const Scale&(?: s)?\) \{\s*return \{(.*?)\};\s*\}", re.S | re.M)
HIERARCHICAL = """
## hierarchical

{description}

It is composed with one of the others and takes the sizes of the nodes besides the shape; `hierarchical_bound` in
`src/algorithms/hierarchical.h` is its bound.
"""


def formula(expression):
    """2 * (s.n - 1) / s.n as a person writes it."""
    text = re.sub(r"\bs\.", "", " ".join(expression.split())).replace("log_n", "log n")
    return text.replace(" * ", " ")


def bounds(fields):
    return {name: formula(value) for name, value in re.findall(r"\.(\w+) = (.*?)(?:,\s*(?=\.)|$)", fields.strip(), re.S)}


def head_of(path):
    """The comment that a file begins with."""
    lines = []
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return textwrap.fill(" ".join(lines), 122, break_long_words=False, break_on_hyphens=False)


def defining(root, function):
    for path in sorted((root / FOLDER).glob("*.cpp")):
        if re.search(rf"^Schedule {function}\(", path.read_text(), re.M):
            return path
    raise SystemExit(f"{CATALOGUE}: no file of {FOLDER} defines {function}")


def page(root):
    path = root / CATALOGUE
    if not path.exists():
        return None
    rows, bound_of = ROW.findall(path.read_text()), dict(BOUND.findall(path.read_text()))
    lines, described = [BEGIN.rstrip()], set()
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == name]
        lines += ["", f"## {name}", ""]
        for source in dict.fromkeys(defining(root, builder) for _, _, builder, _ in mine):
            text = f"As {name_of_first(rows, source, root)}." if source in described else head_of(source)
            described.add(source)
            lines += [text, ""]
        lines += ["| collective | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
        for _, collective, _, bound in mine:
            values = bounds(bound_of[bound])
            lines.append(f"| {collective} | " + " | ".join(values[column] for column in COLUMNS) + " |")
    lines.append(HIERARCHICAL.format(description=head_of(root / FOLDER / "hierarchical.cpp")).rstrip())
    return "\n".join(lines) + "\n"


def name_of_first(rows, source, root):
    return next(f"[{name}](#{name})" for name, _, builder, _ in rows if defining(root, builder) == source)
