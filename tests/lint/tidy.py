#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the files changed since the last release, or on all files with --all.

A changed header is checked through one source that includes it. Before the first release, the
changes are the last commit and the uncommitted changes. If a file has no findings, the hash of all
its inputs (preprocessed text, checks, tool) is recorded, so that a later run skips the file.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY = ["clang-tidy", "--quiet"]
# For tests: disables checks that GoogleTest's macros fail, and checks that do not apply to tests.
TESTS_EXTRA = ["--checks=-cppcoreguidelines-avoid-goto,-cppcoreguidelines-pro-*,-readability-function-cognitive-complexity,"
               "-readability-static-accessed-through-instance,-readability-convert-member-functions-to-static"]


def output_of(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def changed_files():
    """Returns the files that have changed since the last release's tag. Includes uncommitted changes."""
    tags = output_of(["git", "-C", ROOT, "tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*"]).split()
    before = subprocess.run(["git", "-C", ROOT, "rev-parse", "--quiet", "--verify", "HEAD~1"], capture_output=True,
                            text=True, check=False).stdout.split()
    empty_tree = output_of(["git", "-C", ROOT, "hash-object", "-t", "tree", "/dev/null"]).split()
    start = (tags or before or empty_tree)[0]
    names = output_of(["git", "-C", ROOT, "diff", "--name-only", start]).splitlines()
    names += output_of(["git", "-C", ROOT, "ls-files", "--others", "--exclude-standard"]).splitlines()
    return [ROOT / name for name in names]


def units_covering(changed, units):
    """Returns the compilation units to check: one for each changed source, and for each changed header
    one unit that includes it, preferably the header's own .cpp."""
    by_path = {Path(unit["file"]): unit for unit in units}
    chosen = {path for path in changed if path in by_path}
    for header in changed:
        if header.suffix not in {".h", ".hpp"} or not header.exists():
            continue
        own = header.with_suffix(".cpp")
        include = re.compile(r'#\s*include\s*["<](?:[\w./-]*/)?' + re.escape(header.name) + '[">]')
        including = (path for path in sorted(by_path) if include.search(path.read_text()))
        found = own if own in by_path else next(including, None)
        if found:
            chosen.add(found)
    return [by_path[path] for path in sorted(chosen)]


def preprocessor(unit, *options):
    """Returns the unit's compile command with `options`, and without -c and the output file."""
    words = shlex.split(unit["command"])
    output = words.index("-o")
    words = [word for index, word in enumerate(words) if index not in (output, output + 1) and word != "-c"]
    compiler = next(index for index, word in enumerate(words) if word.endswith(("++", "cc")))  # skips ccache
    return words[compiler:] + list(options)


def fingerprint(unit, version):
    """Returns the hash of all inputs of a run of clang-tidy on the unit, including comments, which
    may be NOLINT."""
    text = output_of(preprocessor(unit, "-E", "-C"), cwd=unit["directory"])
    parts = [version, (ROOT / ".clang-tidy").read_text(), Path(__file__).read_text(), text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def tidy(unit, build, version):
    """Returns (name, findings or None, whether clang-tidy was run)."""
    path = Path(unit["file"])
    name = path.relative_to(ROOT).as_posix()
    clean = build / "clean" / fingerprint(unit, version)
    if clean.exists():
        return name, None, False
    extra = TESTS_EXTRA if name.startswith("tests/") else []
    result = subprocess.run(TIDY + extra + ["-p", str(build), str(path)], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        clean.parent.mkdir(exist_ok=True)
        clean.touch()
        return name, None, True
    return name, result.stdout + result.stderr, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/tidy", help="where compile_commands.json is")
    parser.add_argument("--all", action="store_true", help="every file, not only those changed since the last release")
    options = parser.parse_args()
    build = options.build.resolve()
    units = json.loads((build / "compile_commands.json").read_text())
    units = list({unit["file"]: unit for unit in units if Path(unit["file"]).is_relative_to(ROOT)}.values())
    units = [unit for unit in units if not Path(unit["file"]).is_relative_to(ROOT / "build")]  # generated
    units = [unit for unit in units if Path(unit["file"]).suffix == ".cpp"]
    if not options.all:
        units = units_covering(changed_files(), units)
    version = output_of(["clang-tidy", "--version"])
    complaints = ran = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (name, complaint, was_run) in enumerate(pool.map(lambda u: tidy(u, build, version), units), 1):
            ran += was_run
            if sys.stdout.isatty():
                print(f"\r\033[Ktidying [{done}/{len(units)}] {name}", end="", flush=True)
            if complaint:
                complaints += 1
                print(f"\n{name}:\n{complaint}", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    print(f"clang-tidy: {len(units)} files, {complaints} with findings, {len(units) - ran} unchanged since they were clean")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
