# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel and with other ways in which PyTorch distributes training. Most
functions compare the results with those of one process that trains on the whole batch."""
import copy
import os

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import hccl_torch


class Model(torch.nn.Module):
    """A model of four layers; a step can skip the layer ``extra``."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, width)
        self.second = torch.nn.Linear(width, width)
        self.extra = torch.nn.Linear(width, width)
        self.last = torch.nn.Linear(width, 1)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, data: torch.Tensor, uses_extra: bool = True) -> torch.Tensor:
        hidden = torch.tanh(self.second(torch.tanh(self.first(data))))
        if uses_extra:
            hidden = torch.tanh(self.extra(hidden))
        return self.last(hidden) * self.scale


def make_model() -> Model:
    torch.manual_seed(0)
    return Model()


def make_data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    rows = dist.get_world_size() * 8
    return torch.randn(rows, 16, generator=generator), torch.randn(rows, 1, generator=generator)


def rank_part(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.tensor_split(dist.get_world_size())[dist.get_rank()]


def train(model, parts, steps: int = 20, uses_extra=lambda step: True) -> None:
    data, target = parts
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(data, uses_extra(step)), target).backward()
        optimizer.step()


def parameters_of(model) -> torch.Tensor:
    return torch.cat([one.detach().flatten() for one in model.parameters()])


def require_equal_on_all_ranks(model) -> None:
    own = parameters_of(model)
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, own)
    assert all(torch.equal(other, own) for other in everybody)


def compare(tolerance: float = 1e-6, uses_extra=lambda step: True, hook=None, **options) -> None:
    alone, shared = make_model(), DistributedDataParallel(make_model(), **options)
    if hook is not None:
        shared.register_comm_hook(None, hook)
    data, target = make_data()
    train(alone, (data, target), uses_extra=uses_extra)
    train(shared, (rank_part(data), rank_part(target)), uses_extra=uses_extra)
    difference = (parameters_of(alone) - parameters_of(shared.module)).abs().max().item()
    assert difference <= tolerance, difference
    require_equal_on_all_ranks(shared)


def data_parallel() -> None:
    compare()
    assert hccl_torch.stats()["all_reduce"]["zero_copy"] >= 20, hccl_torch.stats()


def small_buckets() -> None:
    compare(bucket_cap_mb=0.001, gradient_as_bucket_view=True)


def unused_parameters() -> None:
    compare(find_unused_parameters=True, uses_extra=lambda step: step % 2 == 0)


def static_graph() -> None:
    compare(static_graph=True)


def compressed() -> None:
    compare(tolerance=0.1, hook=default_hooks.fp16_compress_hook)


def custom_comm_hook() -> None:
    def hook(state, bucket):
        future = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    compare(hook=hook)


def accumulated() -> None:
    """Gradients accumulated over two half batches must equal those of the whole batch, although
    only the second half batch is synchronised."""
    shared, alone = DistributedDataParallel(make_model()), make_model()
    data, target = (rank_part(one) for one in make_data())
    with shared.no_sync():
        (torch.nn.functional.mse_loss(shared(data[:4]), target[:4]) / 2).backward()
    (torch.nn.functional.mse_loss(shared(data[4:]), target[4:]) / 2).backward()
    torch.nn.functional.mse_loss(alone(make_data()[0]), make_data()[1]).backward()
    for one, other in zip(shared.module.parameters(), alone.parameters()):
        assert torch.allclose(one.grad, other.grad, atol=1e-6)


def uneven_inputs() -> None:
    """Join must let ranks with more batches than others finish."""
    shared = DistributedDataParallel(make_model())
    data, target = (rank_part(one) for one in make_data())
    optimizer = torch.optim.SGD(shared.parameters(), lr=0.1)
    with shared.join():
        for _ in range(3 + dist.get_rank()):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(shared(data), target).backward()
            optimizer.step()
    require_equal_on_all_ranks(shared)


def zero_redundancy() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    shared, alone = DistributedDataParallel(make_model()), make_model()
    data, target = make_data()
    for model, parts, optimizer in (
            (shared, (rank_part(data), rank_part(target)),
             ZeroRedundancyOptimizer(shared.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-2)),
            (alone, (data, target), torch.optim.AdamW(alone.parameters(), lr=1e-2))):
        for _ in range(10):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(parts[0]), parts[1]).backward()
            optimizer.step()
    assert (parameters_of(alone) - parameters_of(shared.module)).abs().max() < 1e-6


def fully_sharded() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    for policy, tolerance in ((MixedPrecisionPolicy(), 1e-5), (MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                                                     reduce_dtype=torch.float32), 0.1)):
        alone, shared = make_model(), make_model()
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in (shared.first, shared.second, shared.extra, shared.last):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(shared, mesh=mesh, mp_policy=policy)
        data, target = make_data()
        train(alone, (data, target), steps=10)
        train(shared, (rank_part(data), rank_part(target)), steps=10)
        whole = torch.cat([one.full_tensor().detach().flatten() for one in shared.parameters()])
        difference = (parameters_of(alone) - whole).abs().max().item()
        assert difference <= tolerance, (policy, difference)


def functional_collectives() -> None:
    import torch.distributed._functional_collectives as functional

    size, rank = dist.get_world_size(), dist.get_rank()
    group = dist.group.WORLD
    assert bool((functional.all_reduce(torch.full((10,), float(rank)), "sum", group) == size * (size - 1) / 2).all())
    gathered = functional.all_gather_tensor(torch.full((2, 3), float(rank)), 0, group)
    assert gathered.shape == (2 * size, 3) and gathered[-1, 0] == size - 1
    scattered = functional.reduce_scatter_tensor(torch.ones(size * 4), "avg", 0, group)
    assert scattered.tolist() == [1.0] * 4
    exchanged = functional.all_to_all_single(torch.arange(size * 2) + 10 * rank, None, None, group)
    assert exchanged.tolist() == [2 * rank + i + 10 * other for other in range(size) for i in range(2)]


def distributed_tensors() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    one, other = torch.randn(8 * size, 6), torch.randn(6, 4 * size)
    left, right = distribute_tensor(one, mesh, [Shard(0)]), distribute_tensor(other, mesh, [Shard(1)])
    product = torch.matmul(left, right.redistribute(mesh, [Replicate()]))
    assert torch.allclose(product.full_tensor(), one @ other, atol=1e-5)
    assert torch.equal(left.redistribute(mesh, [Shard(1)]).full_tensor(), one)


def checkpoint(folder: str) -> None:
    import torch.distributed.checkpoint as checkpoints

    model = DistributedDataParallel(make_model())
    train(model, tuple(rank_part(one) for one in make_data()), steps=3)
    saved = copy.deepcopy(model.module.state_dict())
    checkpoints.save(model.module.state_dict(), checkpoint_id=folder)
    fresh = make_model().state_dict()
    checkpoints.load(fresh, checkpoint_id=folder)
    assert all(torch.equal(fresh[name], saved[name]) for name in saved)


def pipeline() -> None:
    """Activations must pass forward from rank to rank, and gradients backward."""
    size, rank = dist.get_world_size(), dist.get_rank()
    torch.manual_seed(0)
    stages = [torch.nn.Linear(8, 8) for _ in range(size)]
    whole = copy.deepcopy(torch.nn.Sequential(*stages))
    data = torch.randn(4, 5, 8)
    for batch in data:
        value = batch if rank == 0 else torch.empty(5, 8)
        if rank > 0:
            dist.recv(value, rank - 1)
            value.requires_grad_()
        result = stages[rank](value)
        if rank < size - 1:
            dist.send(result.detach(), rank + 1)
            gradient = torch.empty(5, 8)
            dist.recv(gradient, rank + 1)
            result.backward(gradient)
        else:
            result.sum().backward()
        if rank > 0:
            dist.send(value.grad, rank - 1)
        whole(batch).sum().backward()
    assert torch.allclose(stages[rank].weight.grad, whole[rank].weight.grad, atol=1e-5)


def detail_reports_a_mismatch() -> None:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch must report mismatched shapes before the call."""
    assert os.environ["TORCH_DISTRIBUTED_DEBUG"] == "DETAIL"
    compare()
    try:
        dist.all_reduce(torch.zeros(10 + dist.get_rank()))
    except RuntimeError as error:
        assert "mismatch" in str(error).lower(), str(error)
    else:
        raise AssertionError("the mismatch was not reported")
