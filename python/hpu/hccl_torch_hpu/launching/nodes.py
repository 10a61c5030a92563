# SPDX-License-Identifier: Apache-2.0
"""Emulates several nodes on one machine. Each node has its own launcher, and ranks of different nodes treat each other
as ranks on different hosts."""
from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from .errors import LaunchError

LOOPBACK = "127.0.0.1"
GRACE = 10.0  # seconds that the other nodes have to end after one node has failed
GRACE_OF_LAUNCHER = 40.0  # seconds; torchrun itself waits 30 s for processes that ignore SIGTERM
POLL = 0.05


def parse_nodes(text: str) -> tuple[int, int]:
    """Parses a string such as 2x4. Returns the number of nodes and the number of devices per node. Raises LaunchError
    for any other string."""
    parts = text.split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise LaunchError(f"--nodes {text} must be the number of nodes and the number of devices per node, e.g. 2x4")
    return int(parts[0]), int(parts[1])


def run_nodes(nodes: int, per_node: int, program: list[str], variables: Mapping[str, str], verbose: bool) -> int:
    """Runs a program on nodes that are emulated on this machine. Every node has its own devices. Traffic between nodes
    goes over TCP on loopback.

    Blocks until all nodes have ended. If one node fails, the others have ten seconds to report the failure before they
    are terminated.

    Args:
        program: the script with its arguments, or ``-m``, a module and its arguments.
        variables: the environment of all processes; each node adds variables of its own, such as ``HCCL_NODE_ID`` and
            ``NODE_RANK``.

    Returns:
        The exit code of the first node that failed, 130 after an interrupt from the keyboard, or else 0.
    """
    port = _free_port()
    running = [_start(node, nodes, per_node, port, program, variables, verbose) for node in range(nodes)]
    try:
        return _wait(running)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        _end(running)


def _start(node: int, nodes: int, per_node: int, port: str, program: list[str], variables: Mapping[str, str],
           verbose: bool) -> subprocess.Popen:
    own = dict(variables) | {"HCCL_NODE_ID": f"node{node}", "NODE_RANK": str(node), "MASTER_ADDR": LOOPBACK,
                             "MASTER_PORT": port}
    for name in ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        own.setdefault(name, "lo")
    options = ["--nnodes", str(nodes), "--node-rank", str(node), "--nproc-per-node", str(per_node), "--master-addr",
               LOOPBACK, "--master-port", port]
    return subprocess.Popen([sys.executable, "-m", "hccl_torch_hpu.launching.ranks", str(os.getpid()),
                             f"hccl-hpu: node {node}", "verbose" if verbose else "terse", str(len(options)), *options,
                             *program], env=own)


def _wait(running: list[subprocess.Popen]) -> int:
    """Blocks until all nodes have ended. After a failure, also returns once no node has any processes left, or once the
    grace period is over. Returns the exit code of the node that failed first, or 0."""
    failed, end = 0, None
    while True:
        states = [node.poll() for node in running]
        failed = failed or next((state for state in states if state), 0)
        if None not in states:
            return failed
        if failed and end is None:
            end = time.monotonic() + GRACE
        if end is not None and (time.monotonic() > end or not any(map(_has_processes, running))):
            return failed
        time.sleep(POLL)


def _has_processes(node: subprocess.Popen) -> bool:
    """Returns whether a node's launcher is running and has child processes."""
    try:
        return node.poll() is None and bool(Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text())
    except OSError:
        return False


def _end(running: list[subprocess.Popen]) -> None:
    """Ends the remaining nodes: sends SIGTERM to their launchers and waits up to GRACE_OF_LAUNCHER until the launchers
    have no processes. Then kills the launchers, because a launcher that waits for other nodes may ignore SIGTERM."""
    for node in running:
        if node.poll() is None:
            node.terminate()
    end = time.monotonic() + GRACE_OF_LAUNCHER
    while any(map(_has_processes, running)) and time.monotonic() < end:
        time.sleep(POLL)
    for node in running:
        node.kill()
        node.wait()


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return str(probe.getsockname()[1])
