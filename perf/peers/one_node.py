# SPDX-License-Identifier: Apache-2.0
"""All sides of the comparison on one node, and hccl-perf as a cross-check."""
import json
import os
import subprocess
import tempfile

from drivers import TUNED, DriverError, Field, Side, end_with_parent, our_environment

FLOOR_VARIANTS = ["16 KiB", "64 KiB", "256 KiB", "16 KiB streaming", "64 KiB streaming", "256 KiB streaming"]


class OneNode(Field):
    """The sides of a comparison on one node. `with_floor` adds the memory floor, a lower bound."""

    def __init__(self, binaries, ranks, collective, with_floor=True, in_host_memory=False, newest=()):
        self.collective = collective
        self.newest = newest
        self.with_floor = with_floor
        self.in_host_memory = in_host_memory
        super().__init__(binaries, ranks)

    def start_sides(self):
        self.start_ours(*(["--host-memory"] if self.in_host_memory else []))
        self.default = Side(self.start_mpi("Open MPI, default", {}), "Open MPI 4, default")
        tuned = self.start_mpi("Open MPI, tuned", TUNED)
        self.peers = [self.default, *self.mpi_sides(tuned, self.collective, "Open MPI 4, tuned")]
        for peer in self.newest:
            self.start_newest(peer)
        if self.with_floor:
            floor = self.start("memory floor", [f"{self.binaries}/memory_floor", str(self.ranks)])
            self.floors = [Side(floor, label, variant) for variant, label in enumerate(FLOOR_VARIANTS)]

    def start_newest(self, peer):
        """Starts the drivers of a library from PyPI. Leaves out settings that keep the driver from starting."""
        if reason := peer.why_not(self.binaries, "collectives", self.ranks, self.collective):
            self.left_out.append(reason)
            return
        for setting in peer.usable_settings(self.ranks):
            label = f"{peer.title}, {setting.label}"
            try:
                driver = self.start(label, peer.argv(self.binaries, "collectives", self.ranks), peer.environment(setting))
            except DriverError as error:
                self.left_out.append(f"{label} ({error})")
                continue
            self.peers += self.mpi_sides(driver, self.collective, label) if setting.algorithms else [Side(driver, label)]


class PerfProgram:
    """Runs hccl-perf over all sizes in each round, so that the report shows its times next to the driver's. Does
    nothing if hccl-perf is not built, if the sizes do not grow by a factor of 8, or for a barrier."""

    def __init__(self, binaries, collective, ranks, sizes, seconds, in_place):
        self.program = f"{binaries}/hccl-perf"
        self.arguments = [collective, "-g", str(ranks), "-w", "5", "-c", "0", "-a", "3", "--standalone", "-f", "8",
                          "-b", str(sizes[0]), "-e", str(sizes[-1]), "--min-time", str(seconds), "--repeats", "1"]
        # One sweep covers sizes that grow by a factor of 8, like the default ones.
        steps = all(b == 8 * a for a, b in zip(sizes, sizes[1:]))
        self.usable = os.access(self.program, os.X_OK) and steps and collective != "barrier"
        self.place = "in_place" if in_place else "out_of_place"

    def round(self, cells):
        if not self.usable:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "perf.json")
            done = subprocess.run([self.program, *self.arguments, "--json", path], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=our_environment(), preexec_fn=end_with_parent,
                                  timeout=300, check=False)
            if done.returncode != 0:
                raise DriverError(f"hccl-perf: {done.stderr.decode(errors='replace').strip()}")
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
        for row in rows:
            for cell in cells:
                if cell.size == row["size_bytes"]:
                    cell.perf.append(row[self.place]["time_ns"])
