#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that run_blocks.py reports the errors of a document."""
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

    def test_correct_output_passes(self):
        result = self.run_page("```console", "$ number=7", "$ printf 'two\\none, pid 12\\n'", "one, pid 99", "two", "```",
                               "```console", "$ echo $number \\", ">   more", "7 more", "$ seq 9", "...", "3", "```",
                               "```text", "$ false", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_callers_mpirun_permission_is_removed(self):
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        self.addCleanup(os.environ.pop, "OMPI_ALLOW_RUN_AS_ROOT")
        result = self.run_page("```console", "$ echo [$OMPI_ALLOW_RUN_AS_ROOT]", "[]", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_build_commands_are_skipped(self):
        result = self.run_page("```console", "$ ./dev run", "no such line", "$ git clone nowhere", "$ cmake --preset release",
                               "$ cmake --build --preset release", "$ echo one", "one", "```")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_missing_output_is_reported(self):
        self.assert_wrong("did not print: 8", "```console", "$ echo 7", "8", "```")

    def test_extra_output_is_reported(self):
        self.assert_wrong("unexpected output: two", "```console", "$ echo one; echo two >&2", "one", "```")

    def test_failing_command_is_reported(self):
        self.assert_wrong("exit status 3", "```console", "$ (exit 3)", "```")

    def test_command_that_ends_the_shell_is_reported(self):
        self.assert_wrong("exit status 1", "```console", "$ exit 0", "$ echo on", "on", "```")

    def test_page_without_blocks_is_reported(self):
        self.assert_wrong("no ```console block", "```text", "$ true", "```")


if __name__ == "__main__":
    unittest.main()
