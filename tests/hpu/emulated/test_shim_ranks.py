# SPDX-License-Identifier: Apache-2.0
"""Tests two ranks: attention over a sequence that is sharded across the ranks, scales that both
ranks share, and collectives in recordings."""
import os
import subprocess
import sys
import textwrap

import pytest

from conftest import HAS_DEVICE, TIME_LIMIT_S

# The limits of both ranks together are less than the time limit of a test, so that the test can
# terminate the ranks itself.
LIMIT_OF_A_RANK_S = TIME_LIMIT_S / 2.5

START = """
import sys
import torch
import torch.distributed as dist
import habana_frameworks.torch
device, backend, store, rank = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
dist.init_process_group(backend, store=dist.FileStore(store, 2), rank=rank, world_size=2)
torch.manual_seed(0)
"""

ATTENTION = """
from habana_frameworks.torch.hpex.kernels import FusedSDPA
from deepspeed.sequence.layer import DistributedAttention

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
"""

SCALES = """
import habana_frameworks.torch.hpex.experimental.transformer_engine as te

layer = te.Linear(4, 4).to(device)
for reduces, expected in ((True, [60.0, 60.0]), (False, [240.0, 60.0])):
    recipe = te.recipe.DelayedScaling(reduce_amax=reduces)
    for _ in range(2):
        with te.fp8_autocast(enabled=True, fp8_recipe=recipe), torch.no_grad():
            layer(torch.full((2, 4), (1.0, 4.0)[rank]).to(device))
    assert layer.scales.scale[0].item() == expected[rank], (reduces, layer.scales.scale)
"""

COLLECTIVES = """
import torch.distributed._functional_collectives as functional
from habana_frameworks.torch.hpu import HPUGraph, graph

x = torch.full((3,), float(rank + 1)).to(device)
recording = HPUGraph()
with graph(recording):
    total = x.clone()
    dist.all_reduce(total)
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    both = [torch.zeros(3, device=device) for _ in range(2)]
    dist.all_gather(both, x)
    other = functional.all_reduce(x, "max", dist.group.WORLD) + 1
for factor in (1.0, 10.0, 2.0):
    x.fill_(factor * (rank + 1))
    recording.replay()
    assert total.tolist() == [6.0 * factor] * 3, total
    assert [one[0].item() for one in both] == [factor, 2 * factor], both
    assert other.tolist() == [2.0 * factor + 1] * 3, other
trial = HPUGraph()
with graph(trial, dry_run=True):
    dist.all_reduce(x)
assert x.tolist() == [2.0 * (rank + 1)] * 3, x
"""

# The program is a function, so that its objects release the group when it returns. The group's threads, which release
# tensors, then end before the interpreter does.
PROGRAM = """
def program():
{}
program()
"""

END = """
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind, backend", [("cpu", "gloo"), pytest.param("hpu", "hccl", marks=pytest.mark.skipif(
    not HAS_DEVICE, reason="needs the installed emulation and HCCL_EMU_HPU=1"))])
@pytest.mark.parametrize("program", [ATTENTION, SCALES, COLLECTIVES], ids=["attention", "scales", "collectives"])
def test_two_ranks(tmp_path, kind, backend, program):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
                                "HCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
    source = START + PROGRAM.format(textwrap.indent(program, "    ")) + END
    command = [sys.executable, "-c", source, kind, backend, str(tmp_path / "store")]
    ranks = [subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) for rank in (0, 1)]
    try:
        for rank in ranks:
            output, _ = rank.communicate(timeout=LIMIT_OF_A_RANK_S)
            assert rank.returncode == 0, output
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def test_deepspeed_is_not_provided():
    import importlib.metadata
    import importlib.util

    import habana_frameworks.torch  # noqa: F401

    if any(importlib.metadata.distributions(name="deepspeed")):
        pytest.skip("needs an environment without DeepSpeed")
    assert importlib.util.find_spec("deepspeed") is None
    with pytest.raises(ModuleNotFoundError):
        import deepspeed  # noqa: F401
