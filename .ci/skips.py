#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the skipped tests of a ctest run. Fails if the machine has everything that a skipped test needs, or if the
test's needs are unknown.

A skipped test prints a reason of the form "needs <need>: ...". NEEDS contains a check for each need.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def memory_gib():
    return int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1)) / 2**20


def reads_processes():
    """Returns whether the system lets this process use process_vm_readv(), which a seccomp filter may refuse."""
    source, target = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    ranges = [(ctypes.c_void_p * 2)(ctypes.addressof(buffer), 1) for buffer in (target, source)]  # two iovecs
    return ctypes.CDLL(None).process_vm_readv(os.getpid(), ranges[0], 1, ranges[1], 1, 0) == 1


def uses_huge_pages_everywhere():
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[always]" in setting.read_text()


def loads_verbs():
    try:
        ctypes.CDLL("libibverbs.so.1")
    except OSError:
        return False
    return True


NEEDS = {
    r"mpirun": lambda: shutil.which("mpirun") is not None,
    r"several cores": lambda: len(os.sched_getaffinity(0)) > 1,
    r"(\d+) cores": lambda count: len(os.sched_getaffinity(0)) >= int(count),
    r"(\d+) GiB": lambda size: memory_gib() >= int(size),
    r"namespaces": lambda: subprocess.run(["unshare", "--pid", "--mount", "--fork", "true"], check=False,
                                          capture_output=True).returncode == 0,
    r"network namespaces": lambda: subprocess.run(["tests/support/hosts.sh", "allowed"], check=False,
                                                  capture_output=True).returncode == 0,
    r"root": lambda: os.geteuid() == 0,
    r"openssl": lambda: shutil.which("openssl") is not None,
    r"nftables": lambda: subprocess.run(["tests/support/hosts.sh", "can-intercept"], check=False,
                                        capture_output=True).returncode == 0,
    r"process_vm_readv": reads_processes,
    r"mbind and move_pages": lambda: False,  # refused by the filters of some containers
    r"huge pages on request only": lambda: not uses_huge_pages_everywhere(),
    r"pidfds of peers": lambda: tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 5),
    r"pidfd": lambda: hasattr(os, "pidfd_open"),
    r"ipv6": lambda: Path("/proc/net/if_inet6").exists() and Path("/proc/net/if_inet6").read_text() != "",
    r"libibverbs": loads_verbs,
    r"memory windows": lambda: False,  # many drivers of NICs lack them
    r"rdma": lambda: any(Path("/sys/class/infiniband").glob("*")),
    r"rdma hosts": lambda: "RXE_NODES" in os.environ,
    r"another build": lambda: False,  # such as one without sanitizers, which distort measurements
}


def is_met(need):
    """Returns whether the machine meets the need; None if the need is unknown."""
    for pattern, check in NEEDS.items():
        match = re.fullmatch(pattern, need)
        if match:
            return check(*match.groups())
    return None


def main():
    cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    skipped = [case for case in cases if case.find("skipped") is not None]
    print(f"{len(skipped)} tests skipped")
    wrong = 0
    for case in skipped:
        output = case.findtext("system-out") or ""
        match = re.search(r"needs ([^:\n]+)(?::[^\n]*)?", output)
        need = match.group(1).strip() if match else None
        met = is_met(need) if need else None
        verdict = {True: "which this machine has", False: "which is missing", None: "which .ci/skips.py cannot check"}[met]
        print(f"  {case.get('name')}: needs {need or 'something that its output does not name'}, {verdict}")
        wrong += met is not False
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
