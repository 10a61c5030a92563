# SPDX-License-Identifier: Apache-2.0
"""Helpers for the training scripts: data, a model, checks on all ranks, and rank 0's report."""
import json
import os
import tempfile

import torch
import torch.distributed as dist

GLOBAL_BATCH = 16
STEPS = 4


def is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    return dist.get_rank() if is_distributed() else int(os.environ.get("RANK", "0"))


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Linear(32, 1))


def make_data(batches: int = STEPS) -> torch.utils.data.TensorDataset:
    generator = torch.Generator().manual_seed(1)
    count = GLOBAL_BATCH * batches
    return torch.utils.data.TensorDataset(torch.randn(count, 8, generator=generator),
                                          torch.randn(count, 1, generator=generator))


def weights(model: torch.nn.Module) -> torch.Tensor:
    """Returns all parameters as one vector on the model's device."""
    return torch.cat([one.detach().float().flatten() for one in model.parameters()])


def require_trained_together(model: torch.nn.Module, before: torch.Tensor, steps: int, on_hpu: bool = True) -> None:
    """Requires that the weights have changed and are bit-identical on all ranks, and that hccl has
    reduced every step's gradients in place, without staging."""
    own = weights(model)
    assert not torch.equal(own.cpu(), before.cpu()), "the weights have not changed"
    if not is_distributed():
        return
    assert dist.get_backend() == "hccl", dist.get_backend()
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, own)
    assert all(torch.equal(one, own) for one in everybody), "the ranks have different weights"
    if on_hpu:
        import hccl_torch

        assert own.device.type == "hpu", own.device
        moved = hccl_torch.stats()["all_reduce"]
        gradients = sum(one.numel() for one in model.parameters() if one.requires_grad)
        assert moved["calls"] >= steps and moved["bytes"] >= 2 * gradients * steps, (moved, gradients)
        assert moved["staged"] == 0, moved


def report(model: torch.nn.Module, losses: list[float], **more) -> None:
    """On rank 0, writes the results that the test compares, including every weight, to a file and
    prints the file's name. Printed results could mix with the lines of other ranks."""
    if rank() == 0:
        world = dist.get_world_size() if is_distributed() else 1
        with tempfile.NamedTemporaryFile("w", prefix="report-", suffix=".json", delete=False) as file:
            json.dump({"world": world, "losses": losses, "weights": weights(model).cpu().tolist()} | more, file)
        print(f"\nREPORT {file.name}\n", end="", flush=True)
