# SPDX-License-Identifier: Apache-2.0
"""Runs a function of a module of this folder on several ranks, each a process under torchrun."""
import os
import signal
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def run_ranks(ranks: int, function: str, *, backend: str = "hccl", seconds: float = 120, environment=None) -> str:
    """Runs ``module:function`` on ``ranks`` processes and returns their output. Fails the test if one of them fails, or
    has not ended after ``seconds``; nothing is left behind then."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               str(FOLDER / "rank.py"), function, backend]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HCCL_")}
    variables |= {"OMP_NUM_THREADS": "1", "HCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"} | (environment or {})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"{function} on {ranks} ranks has not ended after {seconds} s:\n{output}") from None
    assert process.returncode == 0, f"{function} on {ranks} ranks failed:\n{output}"
    return output
