# SPDX-License-Identifier: Apache-2.0
"""Tests sharded training on the device against one process on the CPU: ``shard.py FOLDER CASE...``
on each rank.

Each CASE is fsdp1, fsdp2, dtensor, dcp, checkpointing or compiled. A rank exits with 0 if its results are right.
"""
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from common import make_data, make_model
from torch.distributed.device_mesh import init_device_mesh

_STEPS = 4
_RATE = 0.05


def _batches(rank: int, world: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns this rank's part of each step's batch, on the CPU."""
    inputs, targets = make_data(_STEPS).tensors
    return [(one.chunk(world)[rank], other.chunk(world)[rank])
            for one, other in zip(inputs.chunk(_STEPS), targets.chunk(_STEPS))]


def _train(model: torch.nn.Module, batches: list, device: str) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE)
    for inputs, targets in batches:
        loss = torch.nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _expected() -> dict[str, torch.Tensor]:
    """Returns the weights that one process computes on the CPU from the whole batches."""
    model = make_model()
    _train(model, _batches(0, 1), "cpu")
    return model.state_dict()


def _require_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=0, atol=1e-5, msg=name)


def _full(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.full_tensor() for name, value in model.state_dict().items()}


def fsdp1(folder: Path) -> None:
    from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType

    model = FullyShardedDataParallel(make_model().to("hpu"), device_id=torch.device("hpu", 0), use_orig_params=True)
    _train(model, _batches(dist.get_rank(), dist.get_world_size()), "hpu")
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT,
                                                  FullStateDictConfig(rank0_only=False)):
        _require_equal(model.state_dict(), _expected())


def _sharded() -> torch.nn.Module:
    from torch.distributed.fsdp import fully_shard

    model = make_model().to("hpu")
    mesh = init_device_mesh("hpu", (dist.get_world_size(),))
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def fsdp2(folder: Path) -> None:
    model = _sharded()
    _train(model, _batches(dist.get_rank(), dist.get_world_size()), "hpu")
    _require_equal(_full(model), _expected())


def dtensor(folder: Path) -> None:
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    torch.manual_seed(5)
    left, right = torch.randn(6, 8), torch.randn(8, 4)
    mesh = init_device_mesh("hpu", (dist.get_world_size(),))
    rows = distribute_tensor(left.to("hpu"), mesh, [Shard(0)])
    columns = distribute_tensor(right.to("hpu"), mesh, [Shard(1)])
    product = rows @ columns.redistribute(mesh, [Replicate()])
    assert isinstance(product, DTensor) and product.to_local().device.type == "hpu"
    torch.testing.assert_close(product.full_tensor().cpu(), left @ right)
    inner = distribute_tensor(left.to("hpu"), mesh, [Shard(1)]) @ distribute_tensor(right.to("hpu"), mesh, [Shard(0)])
    torch.testing.assert_close(inner.redistribute(mesh, [Shard(0)]).full_tensor().cpu(), left @ right)


def dcp(folder: Path) -> None:
    """Saves sharded weights, loads them into a new model and compares the two models."""
    import torch.distributed.checkpoint as checkpoint

    batches = _batches(dist.get_rank(), dist.get_world_size())
    model = _sharded()
    _train(model, batches, "hpu")
    trained = _full(model)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder / "dcp")
    fresh = _sharded()
    state = {"model": fresh.state_dict()}
    checkpoint.load(state, checkpoint_id=folder / "dcp")
    fresh.load_state_dict(state["model"])
    for name, value in _full(fresh).items():
        assert torch.equal(value, trained[name]), name


def checkpointing(folder: Path) -> None:
    """Recomputes activations, dropout included, in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    gradients = []
    for recompute in (False, True):
        torch.manual_seed(7)
        model = torch.nn.Sequential(make_model()[:3], torch.nn.Dropout(0.3)).to("hpu")
        inputs = torch.randn(5, 8, device="hpu")
        torch.manual_seed(8)
        result = checkpoint(model, inputs, use_reentrant=False) if recompute else model(inputs)
        result.square().sum().backward()
        gradients.append([one.grad for one in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients))


def compiled(folder: Path) -> None:
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(make_model().to("hpu"))
    _train(torch.compile(model, backend="hpu_backend"), _batches(dist.get_rank(), dist.get_world_size()), "hpu")
    _require_equal(model.module.state_dict(), _expected())


def main() -> None:
    import hccl_torch

    folder, cases = Path(sys.argv[1]), sys.argv[2:]
    dist.init_process_group("hccl")
    for case in cases:
        globals()[case](folder)
        moved = hccl_torch.stats()
        for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce"):
            assert moved.get(name, {"staged": 0})["staged"] == 0, moved
        dist.barrier()
        print(f"{case} is right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
