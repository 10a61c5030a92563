# SPDX-License-Identifier: Apache-2.0
"""Tests that ``import torch`` registers the backend if the package is installed, and that the
package has no other effect."""
import sys
from pathlib import Path

from launcher import run

NOTHING_ELSE = """
import threading, torch
assert torch.distributed.is_backend_available("hccl")
assert threading.active_count() == 1, threading.enumerate()
mapped = open("/proc/self/maps").read()
assert "libSynapse" not in mapped and "hccl_torch/_C" not in mapped, mapped
import hccl_torch
assert "libSynapse" not in open("/proc/self/maps").read()
"""


def python(program: str, **variables: str) -> str:
    return run([sys.executable, "-c", program], **variables)


def test_registers_the_backend_and_loads_no_library() -> None:
    assert python(NOTHING_ELSE) == ""


def test_registers_nothing_if_autoload_is_off() -> None:
    python("import torch; assert not torch.distributed.is_backend_available('hccl')", TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_broken_library_does_not_break_import_torch(tmp_path: Path) -> None:
    """If the extension cannot be loaded, only programs that use the backend may fail."""
    import hccl_torch

    package = tmp_path / "hccl_torch"
    package.mkdir()
    for source in Path(hccl_torch.__file__).parent.glob("*.py"):
        (package / source.name).write_text(source.read_text())
    (package / "_C.so").write_text("no library")
    program = """
import torch, hccl_torch
assert hccl_torch.__file__.startswith(%r)
assert torch.distributed.is_backend_available("hccl")
try:
    torch.distributed.init_process_group("hccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
except ImportError as error:
    print("refused:", error)
""" % str(tmp_path)
    assert "refused:" in python(program, PYTHONPATH=str(tmp_path))


def test_entry_point_turns_errors_into_warnings() -> None:
    program = """
import torch, warnings, hccl_torch
torch.distributed.Backend.backend_list.remove("hccl")
register = torch.distributed.Backend.register_backend
def broken(*arguments, **more): raise OSError("broken on purpose")
torch.distributed.Backend.register_backend = broken
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hccl_torch._autoload()
print(*[one.message for one in caught])
"""
    assert "cannot register the backend \"hccl\": broken on purpose" in python(program)


def test_existing_backend_of_the_same_name_is_kept() -> None:
    program = """
import torch, warnings, hccl_torch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hccl_torch._autoload()
print(*[one.message for one in caught])
"""
    assert "another package has registered the backend" in python(program)
