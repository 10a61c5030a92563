# SPDX-License-Identifier: Apache-2.0
"""Tests the contents of the installed package, and what it requires of the machine."""
import os
import re
import subprocess
from pathlib import Path

import hccl_torch

PACKAGE = Path(hccl_torch.__file__).parent
# The libraries that Python and torch themselves need.
SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def headers(file: Path) -> str:
    return subprocess.run(["objdump", "-p", str(file)], capture_output=True, text=True, check=True).stdout


def test_libraries_need_only_the_package_and_the_system() -> None:
    brought = {file.name for file in PACKAGE.iterdir()}
    for file in PACKAGE.glob("*.so*"):
        needed = set(re.findall(r"NEEDED +(\S+)", headers(file)))
        assert {one for one in needed if not one.startswith(("libtorch", "libc10"))} <= brought | SYSTEM, (file, needed)


def test_libraries_are_found_beside_the_extension() -> None:
    for name in ("_C*.so", "libSynapse.so"):
        file = next(PACKAGE.glob(name))
        assert re.search(r"RUNPATH +\$ORIGIN$", headers(file), re.MULTILINE), headers(file)


def test_types_are_declared() -> None:
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_C.pyi").exists()


def test_runs_with_only_python(tmp_path: Path) -> None:
    """The package must work in a root file system that has only the interpreter, its environment
    and the system libraries that Python and torch need."""
    import shutil
    import sys

    import pytest

    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root and unshare")
    root = tmp_path / "root"
    program = tmp_path / "mount.sh"
    shown = [sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev"]
    libraries = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=True).stdout
    files = set(re.findall(r"(/\S+\.so\S*)", libraries))
    directory = Path(next(file for file in files if "libc.so" in file)).parent
    extra = [str(directory / one) for one in ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "librt.so.1", "libpthread.so.0",
                                              "libdl.so.2", "libutil.so.1", "libz.so.1", "libffi.so.8", "libbz2.so.1.0",
                                              "liblzma.so.5", "libssl.so.3", "libcrypto.so.3", "libexpat.so.1",
                                              "libsqlite3.so.0", "libuuid.so.1", "libnsl.so.2", "libtirpc.so.3")]
    lines = ["set -e"]
    for folder in shown:
        lines += [f"mkdir -p {root}{folder}", f"mount --rbind {folder} {root}{folder}"]
    for file in sorted(files | {one for one in extra if Path(one).exists()}):
        lines += [f"mkdir -p {root}{Path(file).parent}", f"[ -e {root}{file} ] || cp -L {file} {root}{file}"]
    lines += [f"mkdir -p {root}/tmp", f"cp {tmp_path}/program.py {root}/program.py",
              f"exec chroot {root} {sys.executable} /program.py"]
    (tmp_path / "program.py").write_text("""
import torch, torch.distributed as dist
dist.init_process_group("hccl", store=dist.HashStore(), rank=0, world_size=1)
t = torch.ones(1000)
dist.all_reduce(t)
assert t[0] == 1
print("works in", __import__("os").listdir("/"))
""")
    program.write_text("\n".join(lines))
    done = subprocess.run(["unshare", "--mount", "--fork", "sh", str(program)], capture_output=True, text=True, timeout=120,
                          env={"HCCL_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0 and "works in" in done.stdout, done.stdout + done.stderr
