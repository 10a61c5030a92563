# SPDX-License-Identifier: Apache-2.0
"""Runs programs with several ranks, one process per rank, and kills processes that remain."""
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a program under test: the test's environment without the variables
    HCCL_*, TORCH_* and DDP_*, with loopback as the network interface."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HCCL_", "TORCH_", "DDP_"))}
    return variables | {"OMP_NUM_THREADS": "1", "HCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"} | more


class Program:
    """A program and all processes that it starts."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables,
                                        cwd=FOLDER, start_new_session=True)

    def finish(self, seconds: float) -> tuple[int, str]:
        """Returns the exit code and the output. Fails the test if the program has not exited after
        ``seconds``."""
        try:
            output, _ = self.process.communicate(timeout=seconds)
            return self.process.returncode, output
        except subprocess.TimeoutExpired:
            self.kill()
            output, _ = self.process.communicate()
            raise AssertionError(f"{self.process.args} has not ended after {seconds} s:\n{output}") from None
        finally:
            self.kill()

    def kill(self) -> None:
        for pid in session_members(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def session_members(session: int) -> list[int]:
    """Returns the pids of a session's processes, without zombies. All processes that a program
    starts are in its session."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                members.append(int(entry.name))
    return members


def torchrun(ranks: int, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *arguments]


def run(command: list[str], *, seconds: float = 120, code: int | None = 0, **variables: str) -> str:
    """Runs a command. Returns its output. Fails the test unless the command exits in time with this
    code (None: any code)."""
    returned, output = Program(command, environment(**variables)).finish(seconds)
    assert code is None or returned == code, f"{command} ended with {returned}:\n{output}"
    return output


def run_ranks(ranks: int, functions: str, *arguments: str, backend: str = "hccl", **options) -> str:
    """Runs ``module:function,function...`` of this folder in order on several ranks of a group.
    Returns the ranks' output. Rank 0 prints each function's name before it calls the function."""
    return run(torchrun(ranks, str(FOLDER / "rank.py"), functions, backend, *arguments), **options)


# torchrun runs Python unbuffered: print() writes each argument and each newline separately, so the
# ranks' lines could mix in the pipe that they share.
WHOLE_LINES = "import sys; sys.stdout.reconfigure(line_buffering=True, write_through=False)\n"


def run_program(ranks: int, text: str, folder: Path, **options) -> str:
    """Runs a user program on several ranks. Returns the ranks' output, with lines kept intact."""
    path = folder / "program.py"
    path.write_text(WHOLE_LINES + text)
    return run(torchrun(ranks, str(path)), **options)


def free_port() -> str:
    """Returns a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def wait_until(condition, seconds: float = 60) -> None:
    """Waits for a condition. Fails the test if it is still false after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition has not become true"
        time.sleep(0.05)
