#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the runner of documents' blocks reports the errors of a document."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(__file__).with_name("run_blocks.py")


class Blocks(unittest.TestCase):
    def run_page(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").mkdir()
            page = Path(folder) / "page.md"
            page.write_text("\n".join(["# Page", *lines]) + "\n")
            return subprocess.run([sys.executable, RUNNER, page, folder, folder], capture_output=True, text=True, timeout=50)

    def assert_wrong(self, part, *lines):
        result = self.run_page(*lines)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(part, result.stdout + result.stderr)

    def test_what_is_true_passes(self):
        result = self.run_page("```console", "$ number=7", "$ printf 'two\\none, pid 12\\n'", "one, pid 99", "two", "```",
                               "```console", "$ echo $number \\", ">   more", "7 more", "$ seq 9", "...", "3", "```",
                               "```text", "$ false", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_nothing_of_the_caller_lets_root_run_mpirun(self):
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        self.addCleanup(os.environ.pop, "OMPI_ALLOW_RUN_AS_ROOT")
        result = self.run_page("```console", "$ echo [$OMPI_ALLOW_RUN_AS_ROOT]", "[]", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_what_builds_the_project_is_not_run(self):
        result = self.run_page("```console", "$ ./dev run", "no such line", "$ git clone nowhere", "$ cmake --preset release",
                               "$ cmake --build --preset release", "$ echo one", "one", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_other_output(self):
        self.assert_wrong("did not print: 8", "```console", "$ echo 7", "8", "```")

    def test_more_output(self):
        self.assert_wrong("printed as well: two", "```console", "$ echo one; echo two >&2", "one", "```")

    def test_a_command_that_fails(self):
        self.assert_wrong("exit status 3", "```console", "$ (exit 3)", "```")

    def test_a_command_that_ends_the_shell(self):
        self.assert_wrong("exit status 1", "```console", "$ exit 0", "$ echo on", "on", "```")

    def test_a_page_without_blocks(self):
        self.assert_wrong("no ```console block", "```text", "$ true", "```")


if __name__ == "__main__":
    unittest.main()
