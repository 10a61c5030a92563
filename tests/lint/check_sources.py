#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules on sources that compilers do not check: length, licence line, and places of catch,
getenv and macros."""
import re

import english
import tree

LONGEST_FILE = 400

# The only places that may catch exceptions, each with what it does with them.
MAY_CATCH = {
    "src/api/guard.h": "the border to C: a result code and the last error's text",
    "src/api/guard.cpp": "the same",
    "src/api/syn_memory.cpp": "top of a copy on a stream: the outcome of that command; copies before a refused one end first",
    "src/comm/communicator.h": "top of a communicator's work on a stream: the communicator's async error",
    "src/comm/create_all.cpp": "carried to the thread that called, when all have come",
    "src/network/stream_connections.cpp": "the same; the server of the id is asked whose call differs before a mismatch travels on",
    "src/network/message_probe.cpp": "a lost peer offers nothing; that it is lost becomes a fault where it is one",
    "src/network/network_messages.cpp": "a lost peer gets its rank, or the fault that made it go",
    "src/network/stall_reports.cpp": "called by a destructor: without memory this rank does not answer",
    "src/comm/collected_calls.cpp": "the rest of the group is queued, then the error travels on",
    "src/base/log.h": "without memory a line is not written",
    "src/device/progress.cpp": "without memory failures are noted, but not told apart",
    "src/device/work_failure.cpp": "without memory a failure is noted without its reason",
    "src/device/arena.cpp": "without memory for its notes the arena collects later",
    "src/node/fault.h": "without memory a fault is raised without its text",
    "src/bootstrap/control_link.cpp": "without memory to tell of a fault the link ends, which tells it too",
    "src/bootstrap/frame_connection.cpp": "a connection without memory ends, and its owner learns that",
    "src/bootstrap/event_loop.cpp": "the system's error gets a text",
    "src/bootstrap/control_thread.cpp": "top of the control thread: logged, other tasks go on",
    "src/bootstrap/join.cpp": "the other ranks are told why before it travels on",
    "src/bootstrap/server_registry.cpp": "an id that is none has no server to stop; without memory its ranks wait until their deadline",
    "src/base/quiet_thread.h": "the system's error gets a text",
    "src/node/tile_runner.cpp": "becomes a fault at once, so that peers do not wait and this rank leaves in order",
    "src/node/lane.cpp": "a destructor; the communicator has failed already",
}

MAY_DEFINE_FUNCTION_MACROS = {
    "include/hccl/hccl_types.h": "HCCL_VERSION(X, Y, Z) is part of the API",
}

PRODUCT = ("src/", "transports/", "include/")

# Matches the definition of a class that is not nested in another.
CLASS = r"^(?:class|struct|enum class) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?: :[^;{]*)? \{"
NESTED_CLASS = r"^[ \t]+(?:class|struct|enum class) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?: :[^;{]*)?(?: \{|;)"
FOLDERS = ("src", "transports", "include", "perf", "tests", "examples", "python")


def check(root):
    for path in tree.sources(root, *FOLDERS):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        yield from check_licence(path, text)
        yield from check_length(path, name, text)
        code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', tree.without_comments(text))
        if name.startswith(PRODUCT):
            yield from check_product_code(path, name, code)
            yield from check_texts(path, text)
        yield from check_english(path, text)
    yield from check_class_names(root)
    for path in tree.files(root):
        if path.name == "CMakeLists.txt" or path.suffix in tree.SCRIPT_SUFFIXES or path == root / "dev":
            yield from check_licence(path, path.read_text())


def check_licence(path, text):
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
        yield path, 1, "its first lines lack 'SPDX-License-Identifier: Apache-2.0'"


def check_length(path, name, text):
    lines = text.count("\n")
    if lines > LONGEST_FILE:
        yield path, lines, f"{lines} lines; a file has one job and at most {LONGEST_FILE} lines"


def check_english(path, text):
    for line, comment in comments(text):
        for _, complaint in english.complaints(comment):
            yield path, line, complaint


def check_texts(path, text):
    """Checks the literals that the library may show to users."""
    for line, literal in tree.numbered_matches(r'"(?:\\.|[^"\\\n])*"', tree.without_comments(text)):
        for _, complaint in english.complaints(literal.group(0).strip('"')):
            yield path, line, complaint


def comments(text):
    """Yields (line number, text) of each comment. Consecutive comment lines are one comment."""
    for line, block in tree.numbered_matches(r"(?:^[ \t]*//[^\n]*\n)+|//[^\n]*", text):
        parts = [part.strip().removeprefix("//").strip() for part in block.group(0).strip().splitlines()]
        parts = [part for part in parts if not part.startswith("SPDX")]
        for paragraph in "\n".join(parts).split("\n\n"):
            yield line, paragraph.replace("\n", " ")


def check_class_names(root):
    """Checks that no two classes at namespace level have the same name, and that no nested class has the name of one."""
    defined = {}
    for path in tree.sources(root, "src", "transports"):
        for line, match in tree.numbered_matches(CLASS, path.read_text()):
            other = defined.setdefault(match.group(1), path)
            if other != path:
                yield path, line, f"{match.group(1)} is also a class of {other.relative_to(root)}: one word, one meaning"
    for path in tree.sources(root, "src", "transports"):
        for line, match in tree.numbered_matches(NESTED_CLASS, path.read_text()):
            if other := defined.get(match.group(1)):
                yield path, line, f"{match.group(1)} is also a class of {other.relative_to(root)}: one word, one meaning"


def check_product_code(path, name, code):
    if name not in MAY_CATCH:
        for line, _ in tree.numbered_matches(r"\bcatch\s*\(", code):
            yield path, line, "catch belongs to the places that MAY_CATCH names (tests/lint/check_sources.py)"
    if name != "src/base/config.cpp":
        for line, _ in tree.numbered_matches(r"\b(secure_)?getenv\s*\(|\benviron\b", code):
            yield path, line, "the environment is read in src/base/config.cpp alone"
    if name not in MAY_DEFINE_FUNCTION_MACROS:
        for line, match in tree.numbered_matches(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", code):
            yield path, line, f"function-like macro {match.group(1)}: write a function"


if __name__ == "__main__":
    tree.main(check)
