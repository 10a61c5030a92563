# SPDX-License-Identifier: Apache-2.0
"""The drivers, which are started once and then measured in turn, and the busy loop that may run alongside them."""
import ctypes
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

# The time that a driver takes to become idle after a command: hccl's stream workers sleep briefly several times before
# they block.
SETTLE_SECONDS = 0.015

TUNED = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_vader_eager_limit": "65536",
    "OMPI_MCA_btl_vader_max_send_size": "262144",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
}

# The algorithms of Open MPI 4.1's coll/tuned, by variant (see mpi_collectives.cpp). Variants of reduce_scatter below 10
# are algorithms of MPI_Reduce_scatter_block, and the others of MPI_Reduce_scatter.
ALGORITHMS = {
    "all_reduce": {1: "linear", 2: "non-overlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring",
                   6: "Rabenseifner"},
    "broadcast": {1: "linear", 2: "chain", 3: "pipeline", 4: "split binary tree", 5: "binary tree", 6: "binomial",
                  7: "k-nomial", 8: "scatter all-gather", 9: "scatter ring all-gather"},
    "all_gather": {1: "linear", 2: "Bruck", 3: "recursive doubling", 4: "ring", 5: "neighbour exchange",
                   6: "two ranks"},
    "reduce_scatter": {1: "block linear", 2: "block recursive doubling", 3: "block recursive halving",
                       4: "block butterfly", 10: "reduce_scatter", 11: "non-overlapping", 12: "recursive halving",
                       13: "ring", 14: "butterfly"},
    "reduce": {1: "linear", 2: "chain", 3: "pipeline", 4: "binary tree", 5: "binomial", 6: "in-order binary tree",
               7: "Rabenseifner"},
    "alltoall": {1: "linear", 2: "pairwise", 3: "Bruck", 4: "linear with sync", 5: "two ranks"},
    "sendrecv": {},  # MPI_Sendrecv
    "barrier": {1: "linear", 2: "double ring", 3: "recursive doubling", 4: "Bruck", 5: "two ranks", 6: "tree"},
}


class DriverError(Exception):
    """A driver or hccl-perf exited or hung, or a driver answered with an error or a wrong result."""


def end_with_parent(number=signal.SIGTERM):
    """Makes the kernel send this process a signal when its parent ends. Call it in a new child."""
    LIBC.prctl(PR_SET_PDEATHSIG, number)


class Driver:
    """A program that implements the command protocol of command.h."""

    def __init__(self, name, argv, env=None):
        self.name = name
        self.pending = b""
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, preexec_fn=end_with_parent, start_new_session=True)
        try:
            self.title = self.read_answer(60)["ready"]
        except BaseException:
            self.close()
            raise

    def ask(self, verb, timeout=120, **words):
        line = " ".join([verb] + [f"{key}={value}" for key, value in words.items()])
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise DriverError(self.explain(f"exited before this command: {line}")) from None
        answer = self.read_answer(timeout, line)
        if "error" in answer:
            raise DriverError(f"{self.name}: {answer['error']}")
        return answer

    def read_answer(self, timeout, line="start"):
        """Returns the next line of JSON. Skips other lines: some libraries print warnings to standard output."""
        deadline = time.monotonic() + timeout
        while not (text := self.read_line(deadline, timeout, line)).startswith(b"{"):
            pass
        try:
            return json.loads(text)
        except ValueError:
            raise DriverError(f"{self.name}: malformed answer: {text.decode(errors='replace')}") from None

    def read_line(self, deadline, timeout, line):
        output = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(output, 65536) if ready else b""
            if not ready:
                raise DriverError(self.explain(f"no answer within {timeout:.0f} s to: {line}"))
            if not chunk:
                raise DriverError(self.explain(f"exited during this command: {line}"))
            self.pending += chunk
        text, self.pending = self.pending.split(b"\n", 1)
        return text

    def explain(self, what):
        self.errors.seek(0)
        tail = self.errors.read().decode(errors="replace").strip().splitlines()[-12:]
        return "\n  ".join([f"{self.name}: {what}"] + tail)

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(self.process.pid, number)
                    self.process.wait(2)
                    break
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    continue
        self.process.stdout.close()
        self.errors.close()


class BusyLoop:
    """A process that computes endlessly on one core. It starts paused."""

    def __init__(self, core):
        def pin():
            end_with_parent(signal.SIGKILL)  # the only signal that ends a paused process
            os.sched_setaffinity(0, {core})
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin)
        self.pause()

    def run(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def close(self):
        self.process.kill()
        self.process.wait()


class Side:
    """A driver with one variant."""

    def __init__(self, driver, label, variant=0, collective=None, largest=math.inf):
        self.driver = driver
        self.label = label
        self.variant = variant
        self.collective = collective  # the collective that this side always runs; None to run the requested one
        self.largest = largest  # maximum size in bytes

    def run(self, collective, size, iterations, warmup, latency=False, in_place=False):
        """Returns the nanoseconds per call."""
        time.sleep(SETTLE_SECONDS)
        answer = self.driver.ask("run", collective=self.collective or collective, bytes=size, iterations=iterations, warmup=warmup,
                                 batch=1000, variant=self.variant, mode="latency" if latency else "queued",
                                 place="in" if in_place else "out")
        return answer["total_ns"] / iterations

    def verify(self, collective, size, in_place=False):
        answer = self.driver.ask("verify", collective=self.collective or collective, bytes=size,
                                 variant=self.variant, place="in" if in_place else "out")
        if answer["wrong"] != 0:
            raise DriverError(f"{self.driver.name} ({self.label}): {answer['wrong']} wrong elements in {collective} "
                              f"of {size} bytes")


class Field:
    """All sides for one number of ranks. A context manager that ends all drivers on exit."""

    least_floor_size = 32768  # minimum size in bytes at which the floor is shown
    nodes = 1  # the number of nodes if each has several ranks, else 1

    def __init__(self, binaries, ranks):
        self.binaries = binaries
        self.ranks = ranks
        self.drivers = []
        self.ours = None
        self.default = None  # an element of `peers`
        self.peers = []
        self.left_out = []  # lines that name a peer that is not measured, and the reason
        self.gloo = []
        self.floors = []
        try:
            self.start_sides()
        except BaseException:
            self.close()
            raise

    def start_sides(self):
        raise NotImplementedError

    def start_ours(self, *more):
        argv = [f"{self.binaries}/hccl_collectives", "-g", str(self.ranks), *more]
        self.ours = Side(self.start("hccl", argv, our_environment()), "hccl")

    def start(self, name, argv, env=None):
        self.drivers.append(Driver(name, argv, env))
        return self.drivers[-1]

    def start_mpi(self, name, settings):
        more = ["--oversubscribe"] if self.ranks > len(os.sched_getaffinity(0)) else []
        argv = ["mpirun", *more, "-np", str(self.ranks), f"{self.binaries}/mpi_collectives"]
        return self.start(name, argv, {**mpi_environment(), **settings})

    def mpi_sides(self, driver, collective, label):
        """Returns a side that leaves the choice of algorithm to the library, and one side for each algorithm that
        supports this number of ranks."""
        names = ALGORITHMS[collective].items()
        return [Side(driver, label)] + [Side(driver, f"{label}, {name}", variant) for variant, name in names
                                        if name != "two ranks" or self.ranks == 2]

    def close(self):
        for driver in self.drivers:
            driver.close()
        self.drivers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def our_environment():
    """Returns this process's environment without HCCL_COMM_ID, because two jobs cannot use the same address."""
    return {key: value for key, value in os.environ.items() if key != "HCCL_COMM_ID"}


def mpi_environment():
    """Returns this process's environment without the settings of the other libraries. Allows root
    to use mpirun."""
    others = ("OMPI_", "PMIX_", "PRTE_", "I_MPI_", "MPICH_", "CCL_", "FI_")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    if os.geteuid() == 0:
        for launcher in ("OMPI", "PRTE"):
            clean.update({f"{launcher}_ALLOW_RUN_AS_ROOT": "1", f"{launcher}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    return clean
