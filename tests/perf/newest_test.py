#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how ./dev bench starts the libraries from PyPI, with stand-ins for their drivers."""
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "perf"), str(ROOT / "perf/peers")]
import drivers
import newest
import one_node

CORES = len(os.sched_getaffinity(0))
DRIVER = """#!/bin/sh
echo "a warning of a library"
echo '{"ready":"Some MPI 1.0","ranks":2}'
while read -r line; do
  echo "another warning"
  echo '{"total_ns":5000}'
done
"""


class Newest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.binaries = folder.name

    def write(self, name, text):
        path = Path(self.binaries) / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def field(self, peer, ranks=2, collective="all_reduce"):
        """Returns a OneNode that starts only this peer."""
        with mock.patch.object(one_node.OneNode, "start_sides", lambda self: self.start_newest(peer)):
            field = one_node.OneNode(self.binaries, ranks, collective)
        self.addCleanup(field.close)
        return field

    def test_a_driver_may_print_warnings_to_standard_output(self):
        self.write("some_collectives", DRIVER)
        field = self.field(newest.Peer("some", "Some MPI", [], [newest.Setting("default", {})]))
        self.assertEqual([side.label for side in field.peers], ["Some MPI, default"])
        self.assertEqual(field.peers[0].driver.title, "Some MPI 1.0")
        with mock.patch.object(drivers, "SETTLE_SECONDS", 0):
            self.assertEqual(field.peers[0].run("all_reduce", 8, 10, warmup=1), 500)

    def test_a_library_that_is_not_installed_is_left_out(self):
        field = self.field(newest.Peer("some", "Some MPI", [], [newest.Setting("default", {})]))
        self.assertEqual((field.peers, field.left_out), ([], ["Some MPI (not installed)"]))

    def test_a_driver_that_fails_to_start_is_left_out(self):
        self.write("some_collectives", "#!/bin/sh\necho 'no fabric' >&2\nexit 3\n")
        field = self.field(newest.Peer("some", "Some MPI", [], [newest.Setting("default", {})]))
        self.assertEqual(field.peers, [])
        self.assertRegex(field.left_out[0], "(?s)^Some MPI, default .*no fabric")

    def test_a_collective_that_the_driver_lacks_is_left_out(self):
        self.write("some_collectives", DRIVER)
        peer = newest.Peer("some", "Some MPI", [], [newest.Setting("default", {})], lacks=("sendrecv",))
        self.assertEqual(self.field(peer, collective="sendrecv").peers, [])

    def test_a_setting_that_spins_needs_a_core_for_each_rank(self):
        self.write("some_collectives", DRIVER)
        peer = newest.Peer("some", "Some MPI", [], [newest.Setting("spinning", {}, spins=True)])
        self.assertEqual(len(self.field(peer, ranks=CORES).peers), 1)
        field = self.field(peer, ranks=CORES + 1)
        self.assertEqual(field.peers, [])
        self.assertRegex(field.left_out[0], "more ranks than cores")

    def test_settings_of_the_user_do_not_reach_the_drivers(self):
        peer = newest.Peer("some", "Some MPI", [], [])
        with mock.patch.dict(os.environ, {"I_MPI_DEBUG": "5", "CCL_LOG_LEVEL": "info", "HOME": "/home/me"}):
            environment = peer.environment(newest.Setting("default", {"CCL_ATL_SHM": "1"}))
        self.assertNotIn("I_MPI_DEBUG", environment)
        self.assertNotIn("CCL_LOG_LEVEL", environment)
        self.assertEqual((environment["CCL_ATL_SHM"], environment["HOME"]), ("1", "/home/me"))

    def test_a_failed_installation_leaves_nothing_behind(self):
        folder = Path(self.binaries) / "peers"
        peer = newest.Peer("some", "Some MPI", ["some-mpi"], [])
        (folder / "some").mkdir(parents=True)
        failure = mock.Mock(returncode=1, stdout="", stderr="WARNING: retrying\nERROR: no network")
        with mock.patch.object(newest, "FOLDER", folder), mock.patch.object(newest, "progress"), \
                mock.patch.object(newest.subprocess, "run", return_value=failure):
            self.assertEqual(peer.install(), "ERROR: no network")
        self.assertFalse((folder / "some").exists())


if __name__ == "__main__":
    unittest.main()
