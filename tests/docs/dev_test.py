#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests ./dev's report on skipped tests, and ./dev on a system other than Debian."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

DEV = Path(__file__).resolve().parents[2] / "dev"
ROCE = "RoCE: no RDMA device here; ./dev test --rxe runs them"


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def skips(self, *outputs):
        """Returns the report on a run in which one test passed and, for each output, one test printed
        it and was skipped."""
        cases = "".join(f"<testcase name='t'><skipped/><system-out>{output}</system-out></testcase>" for output in outputs)
        report = self.folder / "tests.xml"
        report.write_text(f"<testsuite><testcase name='passed'/>{cases}</testsuite>")
        shell = ["bash", "-c", f"source {DEV}; report_skips {report}"]
        return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.strip()

    def test_no_test_is_skipped(self):
        self.assertEqual(self.skips(), "skipped: 0")

    def test_counts_skips_of_one_reason(self):
        self.assertEqual(self.skips("needs rdma: no device\n", "x\nneeds rdma hosts: none\n"), f"skipped: 2 ({ROCE})")

    def test_counts_skips_by_reason(self):
        self.assertEqual(self.skips("needs rdma: a", "needs rdma: b", "needs mpirun", "why"),
                         f"skipped: 4 (2 {ROCE}; 1 needs mpirun; 1 no reason given)")

    def test_names_a_system_without_debian_packages(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for name in ("bash", "dirname", "env"):
            (tools / name).symlink_to(shutil.which(name))
        (self.folder / "os-release").write_text('NAME=Other\nPRETTY_NAME="Other Linux 7"\n')
        environment = os.environ | {"PATH": str(tools), "OS_RELEASE": str(self.folder / "os-release")}
        for command in ("run", "test", "lint"):
            refused = subprocess.run([DEV, command], capture_output=True, text=True, env=environment, check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertEqual(refused.stdout, "")
            self.assertIn("this is Other Linux 7, and ./dev installs packages of Debian 12", refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        page = refused.stderr.split()[-1]
        self.assertTrue((DEV.parent / page).exists(), f"the message refers to {page}, which does not exist")


if __name__ == "__main__":
    unittest.main()
