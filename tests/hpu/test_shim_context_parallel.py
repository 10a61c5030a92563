# SPDX-License-Identifier: Apache-2.0
"""Attention over a sequence that two ranks hold in halves equals that of one rank, forward and backward."""
import os
import subprocess
import sys

import pytest

from conftest import HAS_DEVICE

PROGRAM = """
import sys
import torch
import torch.distributed as dist
import habana_frameworks.torch
from habana_frameworks.torch.hpex.kernels import FusedSDPA
from deepspeed.sequence.layer import DistributedAttention

device, backend, store, rank = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
dist.init_process_group(backend, store=dist.FileStore(store, 2), rank=rank, world_size=2)
torch.manual_seed(0)
whole = [torch.randn(2, 4, 6, 8).to(device).requires_grad_() for _ in range(3)]
mine = [one.detach()[:, :, 3 * rank:3 * rank + 3].clone().requires_grad_() for one in whole]
attention = DistributedAttention(FusedSDPA.apply, dist.group.WORLD, 1, 2)
result = attention(*mine, 0, None, None, 0.0, True, None, "fast", True, None, "left")
expected = FusedSDPA.apply(*whole, None, 0.0, True)
here = slice(3 * rank, 3 * rank + 3)
torch.testing.assert_close(result, expected[:, :, here])
weights = torch.randn(expected.shape).to(device)
for one, other in zip(torch.autograd.grad(result, mine, weights[:, :, here].contiguous()),
                      torch.autograd.grad(expected, whole, weights)):
    torch.testing.assert_close(one, other[:, :, here])
try:
    attention(*(one[:, :3] for one in mine), 0, None)
except ValueError as error:
    assert "3 heads or positions cannot be divided among 2 ranks" in str(error)
else:
    raise AssertionError("three heads were divided among two ranks")
try:
    attention(*mine, 0, torch.ones(1))
except NotImplementedError as error:
    assert "rotary_pos_emb" in str(error)
else:
    raise AssertionError("rotary_pos_emb was accepted")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind, backend", [("cpu", "gloo"), pytest.param("hpu", "hccl", marks=pytest.mark.skipif(
    not HAS_DEVICE, reason="needs the installed emulation and HCCL_EMU_HPU=1"))])
def test_two_ranks_are_as_one(tmp_path, kind, backend):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
                                "HCCL_SOCKET_IFNAME": "lo",
                                "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [subprocess.Popen([sys.executable, "-c", PROGRAM, kind, backend, str(tmp_path / "store"), str(rank)],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) for rank in (0, 1)]
    try:
        for rank in ranks:
            output, _ = rank.communicate(timeout=200)
            assert rank.returncode == 0, output
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def test_no_package_deepspeed_appears():
    import importlib.util

    import habana_frameworks.torch  # noqa: F401

    assert importlib.util.find_spec("deepspeed") is None
    with pytest.raises(ModuleNotFoundError):
        import deepspeed  # noqa: F401
