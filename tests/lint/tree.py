# SPDX-License-Identifier: Apache-2.0
"""Helpers for the checks in this folder: list files, read sources and report findings."""
import os
import re
import sys
from pathlib import Path

SOURCE_SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
IGNORED_FOLDERS = {".git", "build", "__pycache__"}


def files(root, *folders):
    """Yields the files below the folders (or the root), in a stable order. Skips IGNORED_FOLDERS."""
    for folder in folders or (".",):
        for parent, names, leaves in os.walk(Path(root) / folder):
            names[:] = sorted(n for n in names if n not in IGNORED_FOLDERS)
            for leaf in sorted(leaves):
                yield Path(parent, leaf)


def sources(root, *folders):
    return (path for path in files(root, *folders) if path.suffix in SOURCE_SUFFIXES)


def without_comments(text):
    """Returns the text with comments blanked. Line numbers and string literals stay unchanged."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        return re.sub(r"[^\n]", " ", found) if found.startswith("/") else found

    return token.sub(blank, text)


def numbered_matches(pattern, text):
    """Yields (line number, match) for each match of the pattern in the text."""
    for match in re.finditer(pattern, text, re.M):
        yield text.count("\n", 0, match.start()) + 1, match


def main(check):
    """Runs check(root), prints its findings, and exits with 1 if there are any."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    findings = list(check(root))
    for path, line, what in findings:
        place = path.relative_to(root) if path.is_absolute() else path
        print(f"{place}:{line}: {what}")
    sys.exit(1 if findings else 0)
