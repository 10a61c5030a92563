# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md: every function of the public headers, with its docstring."""
import re
import textwrap

BEGIN = """\
<!-- Made by docs/generate.py of include/hccl/*.h. Do not edit: change the docstring, then ./dev format. -->
# The functions

"""
HEADERS = (("hccl.h", "HCCL"), ("synapse_api.h", "The Synapse runtime"),
           ("hccl_emulation.h", "Emulated devices alone"))
TYPES = "hccl_types.h"
GRAPHS = "synapse_graph_api.h"
SECTION = re.compile(r"^// -{2,} (.*?) -*$")
FUNCTION = re.compile(r"\b((?:hccl|syn)\w+)\(")
VENDOR = re.compile(r"Gaudi's library")

# The functions that succeed and do nothing on emulated devices say so in these words.
NO_EFFECT = re.compile(r"no effect|[Aa]ccepted and ignored|already done|records nothing|which is 0 on emulated")


class Entry:
    """Functions that share a docstring."""

    def __init__(self, section, comment):
        self.section, self.comment, self.declarations = section, comment, []

    def names(self):
        return [FUNCTION.search(text).group(1) for text in self.declarations]


def paragraph(lines):
    return "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines).strip("\n")


def read_header(path):
    """(the header's own docstring, its entries in order)."""
    opening, entries, section, comment, declaration = None, [], "", [], ""
    for line in path.read_text().splitlines() if path.exists() else []:
        if declaration:
            declaration += "\n" + line
        elif line.startswith("//") and "SPDX" not in line:
            heading = SECTION.match(line)
            if heading:
                section, comment = heading.group(1), []
            else:
                comment.append(line)
            continue
        elif re.match(r"(hcclResult_t|const char\*|int|synStatus) .*(\(|SYN_API_CALL$)", line):
            declaration = line
        else:
            if comment and opening is None:
                opening = paragraph(comment)
            comment = [] if line or not entries or entries[-1].declarations else comment
            continue
        if declaration.endswith(";"):
            follows = not comment and entries and entries[-1].section == section
            if not follows:
                entries.append(Entry(section, paragraph(comment)))
            entries[-1].declarations.append(tidy(declaration))
            declaration, comment = "", []
    return opening or "", entries


def tidy(declaration):
    one_line = re.sub(r"\s+", " ", declaration).replace("SYN_API_CALL ", "")
    if len(one_line) <= 120:
        return one_line
    head, arguments = one_line.split("(", 1)
    lines, line = [], head + "("
    for argument in re.split(r"(?<=,) ", arguments):
        if len(line) + len(argument) > 119:
            lines.append(line.rstrip())
            line = " " * (len(head) + 1)
        line += argument + " "
    return "\n".join([*lines, line.rstrip()])


def marks(comment):
    if NO_EFFECT.search(comment.replace("\n", " ")):
        return "accepted, no effect"
    return "differs" if VENDOR.search(comment.replace("\n", " ")) else "available"


def function_list(headers):
    """At a glance: each section's functions, by what a program may expect of them."""
    yield "| | available | differs from Gaudi's library | accepted, no effect |\n|---|---|---|---|"
    for entries in headers:
        for section in dict.fromkeys(entry.section for entry in entries):
            cells = {"available": [], "differs": [], "accepted, no effect": []}
            for entry in (e for e in entries if e.section == section):
                for name in entry.names():
                    cells[marks(entry.comment)].append(f"`{name}`")
            yield f"| {section} | " + " | ".join(", ".join(cell) or " " for cell in cells.values()) + " |"


def section_text(entries):
    section = None
    for entry in entries:
        if entry.section != section:
            section = entry.section
            yield f"\n### {section}"
        names = ", ".join(entry.names())
        yield "\n#### " + (names if len(names) < 100 else entry.names()[0] + " and others")
        yield "\n```c\n" + "\n".join(entry.declarations) + "\n```"
        yield escaped(with_list(entry.comment))


def with_list(comment):
    """The docstring with the lines that begin with a label as a list."""
    first, *rest = re.split(r"^(?=(?:Blocks|In place|Errors): )", comment, flags=re.M)
    return first + "".join(("\n- " if number == 0 else "- ") + part for number, part in enumerate(rest))


def escaped(comment):
    """Docstrings are plain text: what markdown would take for its own is quoted. An indented paragraph is code."""
    return "\n\n".join(code_block(part) if is_code(part) else escaped_prose(part) for part in comment.split("\n\n"))


def is_code(text):
    return all(line.startswith("  ") for line in text.splitlines())


def code_block(text):
    return "```c\n" + textwrap.dedent(text) + "\n```"


def escaped_prose(comment):
    parts = re.split(r"(`[^`]*`)", comment)
    return "".join(part if part.startswith("`") else re.sub(r"([*<>_])", r"\\\1", part) for part in parts)


def enum_tables(root):
    source = (root / "include/hccl" / TYPES).read_text() if (root / "include/hccl" / TYPES).exists() else ""
    for name in ("hcclDataType_t", "hcclRedOp_t"):
        match = re.search(rf"((?://[^\n]*\n)+)typedef enum {name}(?: \w+)? \{{(.*?)\}}", source, re.S)
        if match:
            yield f"\n#### {name}\n\n" + escaped(paragraph(match.group(1).splitlines())) + "\n\n| name | value |\n|---|---|"
            for value, number in re.findall(r"(\w+)\s*=\s*(\d+)", match.group(2)):
                yield f"| `{value}` | {number} |"


def deviations(read):
    """The sentences of docstrings that speak of Gaudi's library."""
    for _, opening, entries in read:
        for names, comment in [("everywhere", opening)] + [(", ".join(e.names()), e.comment) for e in entries]:
            for sentence in re.split(r"(?<=\.) ", comment.replace("\n", " ")):
                if VENDOR.search(sentence):
                    yield filled("- ", (f"`{names}`: " if names != "everywhere" else "") + escaped(sentence))


def filled(bullet, text):
    return textwrap.fill(text, 122, initial_indent=bullet, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def page(root):
    read = [(title, *read_header(root / "include/hccl" / name)) for name, title in HEADERS]
    graph_opening, graphs = read_header(root / "include/hccl" / GRAPHS)
    missing = sum(len(entry.names()) for entry in graphs)
    count = missing + sum(len(entry.names()) for _, _, entries in read for entry in entries)
    lines = [BEGIN + f"The public headers declare {count} functions; {missing} of them are exported and not available in "
             "this version. Codes\nand texts of failures are in [errors.md](errors.md), variables in "
             "[environment.md](environment.md).",
             "\n## At a glance\n", *function_list([entries for _, _, entries in read]),
             "\nThe functions of compute [graphs](#graphs) are not available.",
             "\n## Where docstrings name Gaudi's library\n", *deviations(read),
             "\nMore of this is in [what differs from Gaudi's library](../explanation/compatibility.md)."]
    for title, opening, entries in read:
        lines += [f"\n## {title}\n", escaped(opening), *section_text(entries)]
    lines += ["\n## Types", *enum_tables(root), "\nResult codes are in [errors.md](errors.md).",
              "\n## Graphs\n", escaped(graph_opening), ""]
    for section in dict.fromkeys(entry.section for entry in graphs):
        names = [name for entry in graphs if entry.section == section for name in entry.names()]
        lines.append(filled("- ", f"{section}: " + ", ".join(f"`{name}`" for name in names)))
    return "\n".join(lines) + "\n"
