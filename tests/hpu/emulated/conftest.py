# SPDX-License-Identifier: Apache-2.0
"""Puts the packages of this source tree on the path unless they are installed, defines the fixture
``device``, and gives each test a time limit.

Tests of the shim run on CPU tensors. With an installed emulation and HCCL_EMU_HPU=1, they also run
on the device "hpu".
"""
import faulthandler
import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python/hpu/hccl_torch_hpu"
TIME_LIMIT_S = 300

os.environ.setdefault("OMP_NUM_THREADS", "1")

# An installed package takes precedence, because it has the compiled extension. Only tests that use
# the device need the extension.
if importlib.util.find_spec("hccl_torch") is None:
    sys.path.insert(0, str(ROOT / "python"))
if importlib.util.find_spec("hccl_torch_hpu") is None:
    sys.path.insert(0, str(PACKAGE.parent))
import hccl_torch_hpu  # noqa: E402

SHIM = Path(list(hccl_torch_hpu.__path__)[0]) / "shim"
if str(SHIM) not in sys.path:
    sys.path.append(str(SHIM))

import torch  # noqa: E402

HAS_DEVICE = hasattr(torch, "hpu") and torch.hpu.is_available()


@pytest.fixture(params=["cpu", pytest.param("hpu", marks=pytest.mark.skipif(
    not HAS_DEVICE, reason="needs the installed emulation and HCCL_EMU_HPU=1"))])
def device(request):
    """Returns the device on which a test creates its tensors."""
    torch.manual_seed(0)
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def time_limit():
    """Ends the process with a stack trace of all threads if a test takes too long."""
    faulthandler.dump_traceback_later(TIME_LIMIT_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
