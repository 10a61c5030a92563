#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the translation units that changed since the last release, or on all with --all.

A unit counts as changed if it or any header of ours that it includes did. A clean result is remembered by the hash of
everything that went into it (preprocessed text, checks, tool), so a second run only looks at what is new.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY = ["clang-tidy", "--quiet"]
# The same configuration, less what GoogleTest's macros expand to and what is no fault in a test.
TESTS_EXTRA = ["--checks=-cppcoreguidelines-avoid-goto,-cppcoreguidelines-pro-*,-readability-function-cognitive-complexity,"
               "-readability-static-accessed-through-instance,-readability-convert-member-functions-to-static"]


def output_of(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def changed_files():
    """Files that differ from the last release's tag, committed or not; None (all) if there is no release yet."""
    tags = output_of(["git", "-C", ROOT, "tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*"]).split()
    if not tags:
        return None
    names = output_of(["git", "-C", ROOT, "diff", "--name-only", tags[0]]).splitlines()
    names += output_of(["git", "-C", ROOT, "ls-files", "--others", "--exclude-standard"]).splitlines()
    return {(ROOT / name).resolve() for name in names}


def preprocessor(unit, *options):
    """The unit's compile command turned into one that only preprocesses."""
    words = shlex.split(unit["command"])
    output = words.index("-o")
    words = [word for index, word in enumerate(words) if index not in (output, output + 1) and word != "-c"]
    compiler = next(index for index, word in enumerate(words) if word.endswith(("++", "cc")))  # after ccache and such
    return words[compiler:] + list(options)


def dependencies(unit):
    """Our own files that the unit is made of."""
    rule = output_of(preprocessor(unit, "-MM"), cwd=unit["directory"])
    names = rule.replace("\\\n", " ").split(":", 1)[1].split()
    return {(Path(unit["directory"]) / name).resolve() for name in names}


def fingerprint(unit, version):
    """Comments count too: a NOLINT is one."""
    text = output_of(preprocessor(unit, "-E", "-C"), cwd=unit["directory"])
    parts = [version, (ROOT / ".clang-tidy").read_text(), Path(__file__).read_text(), text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def tidy(unit, build, version):
    """(name, complaint or None, whether it was run)"""
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
    units = [unit for unit in units if Path(unit["file"]).suffix == ".cpp"]
    changed = None if options.all else changed_files()
    if changed is not None:
        units = [unit for unit in units if dependencies(unit) & changed]
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
