# SPDX-License-Identifier: Apache-2.0
"""Tests collectives on every rank against expected values. Each rank computes these from all ranks'
inputs, which it can generate."""
import itertools

import torch
import torch.distributed as dist

MOVED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64,
         torch.bool, torch.int16, torch.complex64, torch.float8_e4m3fn]
REDUCED = [torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64]
COUNTS = [0, 1, 3, 1023, 100_003]


def values(rank: int, count: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Returns the input of a rank: small integers, whose sums are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(0, 3, (count,), generator=generator).to(dtype)


def inputs(count: int, dtype: torch.dtype, seed: int = 0) -> list[torch.Tensor]:
    return [values(rank, count, dtype, seed) for rank in range(dist.get_world_size())]


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a strided copy: the elements are every third element of a larger tensor."""
    whole = torch.zeros(3 * tensor.numel(), dtype=tensor.dtype)
    whole[::3] = tensor
    return whole[::3]


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two tensors are equal, even in types that torch cannot compare."""
    flat = [tensor.clone(memory_format=torch.contiguous_format).view(torch.uint8) for tensor in (one, other)]
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(*flat)


def every_case(dtypes):
    for dtype, count, make in itertools.product(dtypes, COUNTS, (lambda t: t.clone(), strided)):
        yield dtype, count, make


def all_reduce() -> None:
    rank = dist.get_rank()
    folds = {dist.ReduceOp.SUM: lambda all: sum(all[1:], all[0].clone()), dist.ReduceOp.MIN: lambda all: torch.stack(all).amin(0),
             dist.ReduceOp.MAX: lambda all: torch.stack(all).amax(0), dist.ReduceOp.PRODUCT: lambda all: torch.stack(all).prod(0)}
    for dtype, count, make in every_case(REDUCED):
        all_inputs = inputs(count, dtype)
        for operation, fold in folds.items():
            tensor = make(all_inputs[rank])
            work = dist.all_reduce(tensor, op=operation, async_op=True)
            work.wait()
            assert same(tensor, fold(all_inputs).to(dtype)), (dtype, count, operation)


def averages_and_booleans() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    tensor = torch.full((1000,), float(rank + 1))
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert torch.equal(tensor, torch.full((1000,), (size + 1) / 2))
    number = torch.tensor([2 * rank, 4 * rank])
    dist.all_reduce(number, op=dist.ReduceOp.AVG)
    assert number.tolist() == [size - 1, 2 * (size - 1)]
    truth = torch.tensor([rank == 0, False, True])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, False, True]


def broadcast() -> None:
    for dtype, count, make in every_case(MOVED):
        for root in range(dist.get_world_size()):
            all_inputs = inputs(count, dtype, root)
            tensor = make(all_inputs[dist.get_rank()])
            dist.broadcast(tensor, root)
            assert same(tensor, all_inputs[root]), (dtype, count, root)


def reduce() -> None:
    for root in range(dist.get_world_size()):
        all_inputs = inputs(1023, torch.int64)
        tensor = all_inputs[dist.get_rank()].clone()
        dist.reduce(tensor, root)
        if dist.get_rank() == root:
            assert same(tensor, sum(all_inputs))


def gathers() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype, count, make in every_case(MOVED):
        all_inputs = inputs(count, dtype)
        whole = torch.empty(size * count, dtype=dtype)
        dist.all_gather_into_tensor(whole, make(all_inputs[rank]))
        assert same(whole, torch.cat(all_inputs)), (dtype, count)
        parts = [make(torch.zeros_like(one)) for one in all_inputs]
        dist.all_gather(parts, make(all_inputs[rank]))
        assert all(same(part, one) for part, one in zip(parts, all_inputs)), (dtype, count)
    unequal = [torch.full((5 + other,), float(other)) for other in range(size)]
    parts = [torch.zeros(5 + other) for other in range(size)]
    dist.all_gather(parts, unequal[rank])
    assert all(torch.equal(part, one) for part, one in zip(parts, unequal))
    collected = [torch.zeros(7) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((7,), float(rank)), collected, dst=1)
    if rank == 1:
        assert [part[0].item() for part in collected] == list(range(size))


def scatters() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype, count, make in every_case(REDUCED):
        all_inputs = inputs(size * count, dtype)
        expected = sum(all_inputs[1:], all_inputs[0].clone()).to(dtype)[rank * count:(rank + 1) * count]
        output = make(torch.zeros(count, dtype=dtype))
        dist.reduce_scatter_tensor(output, make(all_inputs[rank]))
        assert same(output, expected), (dtype, count)
        output = make(torch.zeros(count, dtype=dtype))
        dist.reduce_scatter(output, list(all_inputs[rank].split(count) if count else [output.clone()] * size))
        assert same(output, expected), (dtype, count)
    output = torch.zeros(3)
    dist.scatter(output, [torch.full((3,), float(other)) for other in range(size)] if rank == 0 else None, src=0)
    assert output.tolist() == [float(rank)] * 3


def all_to_all() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    even = torch.arange(size * 4) + 100 * rank
    output = torch.empty_like(even)
    dist.all_to_all_single(output, even)
    assert torch.equal(output, torch.cat([torch.arange(4) + 4 * rank + 100 * other for other in range(size)]))
    # Rank r sends r + s rows to rank s.
    sent = [rank + other for other in range(size)]
    received = [other + rank for other in range(size)]
    output = torch.full((sum(received), 2), -1)
    dist.all_to_all_single(output, torch.full((sum(sent), 2), rank), received, sent)
    assert output[:, 1].tolist() == [other for other in range(size) for _ in range(other + rank)]
    outputs = [torch.zeros(other + 1) for other in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1,), float(rank)) for _ in range(size)])
    assert all(part.tolist() == [float(other)] * (other + 1) for other, part in enumerate(outputs))


def messages() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    to, source = (rank + 1) % size, (rank - 1) % size
    output = torch.zeros(1000)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((1000,), float(rank)), to),
                                    dist.P2POp(dist.irecv, output, source)])
    for work in works:
        work.wait()
    assert output[0].item() == source
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [one["rank"] for one in objects] == list(range(size))
    shared = [f"from {rank}"]
    dist.broadcast_object_list(shared, src=0)
    assert shared == ["from 0"]
    dist.barrier()
