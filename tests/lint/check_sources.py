#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules on sources that compilers do not check, such as length, licence line, phrases of
comments, names of classes, and the files that may contain catch, getenv and macros."""
import re

import english
import tree

LONGEST_FILE = 400

# The only files of the product that may catch exceptions, and what each file does with them.
MAY_CATCH = {
    "src/api/guard.h": "the C boundary: turns exceptions into a result code and the last error's text",
    "src/api/guard.cpp": "the C boundary",
    "src/api/communicators.cpp": "communicators that get no handle leave, so that other ranks do not wait for them",
    "src/api/syn_memory.cpp": "runs a copy on a stream and records its outcome; copies before a rejected one complete first",
    "src/comm/communicator.h": "runs a communicator's work on a stream and sets its asynchronous error",
    "src/comm/create_communicator.cpp": "reports the error to the other ranks before it rethrows",
    "src/comm/create_all.cpp": "passes the exception to the calling thread once all ranks have returned",
    "src/network/stream_connections.cpp": "asks the root server which call differs before it rethrows a mismatch",
    "src/network/message_probe.cpp": "a lost peer offers no message; other code raises the fault",
    "src/network/network_messages.cpp": "adds the rank of a lost peer, or the fault that ended it",
    "src/network/stall_reports.cpp": "called by a destructor: without memory, this rank does not answer",
    "src/comm/collected_calls.cpp": "queues the rest of the group before it rethrows",
    "src/base/log.h": "without memory, a line is not written",
    "src/device/progress.cpp": "without memory, failures are recorded without their differences",
    "src/device/work_failure.cpp": "without memory, a failure is recorded without its reason",
    "src/device/arena.cpp": "without memory for its records, the arena frees pages later",
    "src/multinode/multi_node_stream.cpp": "asks the root server which call differs before it rethrows a mismatch",
    "src/node/call_match.cpp": "an operation must fail on all ranks of the node before a rank leaves it",
    "src/node/operation_wait.cpp": "an operation must fail on all ranks of the node before a rank leaves it",
    "src/node/fault.h": "without memory, a fault is raised without its text",
    "src/bootstrap/control_link.cpp": "without memory for the report of a fault, the link ends, which peers detect",
    "src/bootstrap/frame_connection.cpp": "without memory, a connection ends and notifies its owner",
    "src/bootstrap/root_server.cpp": "without memory for an admitted rank, fails the rendezvous before it rethrows",
    "src/bootstrap/event_loop.cpp": "adds a text to the system's error",
    "src/bootstrap/control_thread.cpp": "logs a failed task of the control thread, so that other tasks run",
    "src/bootstrap/join.cpp": "sends the reason to the other ranks before it rethrows",
    "src/bootstrap/server_registry.cpp": "an invalid id has no server to stop; without memory, its ranks wait until their deadline",
    "src/base/quiet_thread.h": "adds a text to the system's error",
    "src/node/tile_runner.cpp": "raises a fault at once, so that peers do not wait and this rank leaves in order",
    "src/node/lane.cpp": "runs in a destructor, after the communicator has failed",
}

MAY_DEFINE_FUNCTION_MACROS = {
    "include/hccl/hccl_types.h": "HCCL_VERSION(X, Y, Z) is part of the API",
}

PRODUCT = ("src/", "transports/", "include/")
# Files in the product's folders that are not sources: build and lint settings, the exports, and a
# template.
OTHER_PRODUCT_FILES = {"CMakeLists.txt", ".clang-tidy", "exports.map", "unsupported_graphs.cpp.in"}

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
    for path in tree.files(root, *(folder for folder in PRODUCT if (root / folder).exists())):
        if path.suffix not in tree.SOURCE_SUFFIXES and path.name not in OTHER_PRODUCT_FILES:
            yield path, 1, "a source must end in .h or .cpp, or the other checks would not read it"
    for path in tree.files(root):
        if path.name == "CMakeLists.txt" or path.suffix in tree.SCRIPT_SUFFIXES or path == root / "dev":
            yield from check_licence(path, path.read_text())


def check_licence(path, text):
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
        yield path, 1, "the first three lines lack 'SPDX-License-Identifier: Apache-2.0'"


def check_length(path, name, text):
    lines = text.count("\n")
    if lines > LONGEST_FILE:
        yield path, lines, f"{lines} lines, more than {LONGEST_FILE}: split the file by task"


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
    """Yields (line number, text) for each paragraph of each comment. Consecutive comment lines are one comment."""
    for line, block in tree.numbered_matches(r"(?:^[ \t]*//[^\n]*\n)+|//[^\n]*", text):
        parts = [part.strip().removeprefix("//").strip() for part in block.group(0).strip().splitlines()]
        parts = [part for part in parts if not part.startswith("SPDX")]
        for paragraph in "\n".join(parts).split("\n\n"):
            yield line, paragraph.replace("\n", " ")


def check_class_names(root):
    """Checks that no two namespace-level classes share a name, and that no nested class has the name of one of them."""
    defined = {}
    for path in tree.sources(root, "src", "transports"):
        for line, match in tree.numbered_matches(CLASS, path.read_text()):
            other = defined.setdefault(match.group(1), path)
            if other != path:
                yield path, line, f"{match.group(1)} is also a class of {other.relative_to(root)}: rename one of them"
    for path in tree.sources(root, "src", "transports"):
        for line, match in tree.numbered_matches(NESTED_CLASS, path.read_text()):
            if other := defined.get(match.group(1)):
                yield path, line, f"{match.group(1)} is also a class of {other.relative_to(root)}: rename one of them"


def check_product_code(path, name, code):
    if name not in MAY_CATCH:
        for line, _ in tree.numbered_matches(r"\bcatch\s*\(", code):
            yield path, line, "catch is allowed only in the files of MAY_CATCH (tests/lint/check_sources.py)"
    if name != "src/base/config.cpp":
        for line, _ in tree.numbered_matches(r"\b(secure_)?getenv\s*\(|\benviron\b", code):
            yield path, line, "only src/base/config.cpp may read the environment"
    for line, match in tree.numbered_matches(r"\b(?:std::)?(printf|puts|putchar|vprintf)\s*\(|\b(stdout|std::cout)\b", code):
        yield path, line, f"{match.group(1) or match.group(2)}: the library writes nothing to standard output"
    if name not in MAY_DEFINE_FUNCTION_MACROS:
        for line, match in tree.numbered_matches(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", code):
            yield path, line, f"function-like macro {match.group(1)}: write a function"


if __name__ == "__main__":
    tree.main(check)
