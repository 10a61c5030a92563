# SPDX-License-Identifier: Apache-2.0
"""Tests features beyond plain collectives, such as further reductions, messages, futures, counts and
errors. Run on every rank."""
import datetime
import functools
import operator
import time

import torch
import torch.distributed as dist

import hccl_torch
from collectives import inputs, same, values


def raises(error, text: str, call) -> None:
    try:
        call()
    except error as raised:
        assert text in str(raised), str(raised)
        return
    raise AssertionError(f"{error.__name__} was not raised")


def random_integers(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns integers with random bits."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8).view(dtype)


def bitwise_reductions() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    folds = {dist.ReduceOp.BAND: operator.and_, dist.ReduceOp.BOR: operator.or_, dist.ReduceOp.BXOR: operator.xor}
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        for operation, fold in folds.items():
            for count in (1, 7, 1023, 100_003):
                parts = [random_integers(other, count, dtype) for other in range(size)]
                expected = functools.reduce(fold, parts)
                tensor = parts[rank].clone()
                dist.all_reduce(tensor, op=operation)
                assert torch.equal(tensor, expected), (dtype, operation, count)
                output = torch.zeros(count, dtype=dtype)
                dist.reduce_scatter_tensor(output, parts[rank].repeat(size), op=operation)
                assert torch.equal(output, expected), (dtype, operation, count)
    truth = torch.tensor([True, rank == 0, rank == 0, False])
    dist.all_reduce(truth, op=dist.ReduceOp.BXOR)
    assert truth.tolist() == [size % 2 == 1, True, True, False]


def premultiplied_sums() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    total = size * (size + 1) / 2
    for factor in (0.5, torch.tensor([0.5])):
        operation = dist._make_nccl_premul_sum(factor)
        tensor = torch.full((1000,), float(rank + 1))
        dist.all_reduce(tensor, op=operation)
        assert torch.equal(tensor, torch.full((1000,), total / 2))
        given = torch.full((size * 10,), float(rank + 1))
        output = torch.zeros(10)
        dist.reduce_scatter_tensor(output, given, op=operation)
        assert torch.equal(output, torch.full((10,), total / 2)) and given[0] == rank + 1
        tensor = torch.full((10,), float(rank + 1))
        dist.reduce(tensor, 0, op=operation)
        assert tensor[0] == (total / 2 if rank == 0 else rank + 1)


def premultiplied_sums_of_other_types() -> None:
    """The factor of a premultiplied sum may have any type and must be converted to the tensor's
    type. Integers have no premultiplied sum."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
        for factor in (0.5, torch.tensor([0.5]), torch.tensor([0.5], dtype=torch.float64)):
            operation = dist._make_nccl_premul_sum(factor)
            tensor = torch.full((1000,), 2.0, dtype=dtype)
            dist.all_reduce(tensor, op=operation)
            assert bool((tensor == size).all()), (dtype, factor)
            if not dtype.is_complex:
                output = torch.zeros(10, dtype=dtype)
                dist.reduce_scatter_tensor(output, torch.full((10 * size,), 2.0, dtype=dtype), op=operation)
                assert bool((output == size).all()), (dtype, factor)
                tensor = torch.full((10,), 2.0, dtype=dtype)
                dist.reduce(tensor, 0, op=operation)
                assert tensor[0] == (size if rank == 0 else 2)
    operation = dist._make_nccl_premul_sum(2.0)
    for dtype in (torch.int32, torch.int64, torch.bool):
        raises(TypeError, "with PREMUL_SUM", lambda: dist.all_reduce(torch.ones(3, dtype=dtype), op=operation))


def refused_reductions() -> None:
    """A refusal must name the operation and the type, and the group must remain usable."""
    raises(TypeError, "all_reduce cannot reduce Float with BAND",
           lambda: dist.all_reduce(torch.zeros(3), op=dist.ReduceOp.BAND))
    raises(TypeError, "all_reduce cannot reduce Short with SUM", lambda: dist.all_reduce(torch.zeros(3, dtype=torch.int16)))
    raises(TypeError, "reduce cannot reduce Float8_e4m3fn with SUM",
           lambda: dist.reduce(torch.zeros(3, dtype=torch.float8_e4m3fn), 0))
    raises(TypeError, "cannot reduce Bool with AVG", lambda: dist.all_reduce(torch.tensor([True]), op=dist.ReduceOp.AVG))
    raises(ValueError, "all_reduce does not support",
           lambda: dist.all_reduce(torch.zeros(3, dtype=torch.complex64), op=dist.ReduceOp.MAX))
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor[0] == dist.get_world_size()


def large_messages() -> None:
    rank = dist.get_rank()
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        all_inputs = inputs(1 << 20, dtype)
        tensor = all_inputs[rank].clone()
        dist.all_reduce(tensor, async_op=True).wait()
        assert same(tensor, sum(all_inputs[1:], all_inputs[0].clone()).to(dtype))


def dependent_operations() -> None:
    """Operations queued on one tensor must have the same results as if the program waited for
    each."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for count in (100, 30_000, 1_000_000):
        for make in (torch.empty, hccl_torch.empty, lambda n: torch.empty(2 * n)[::2]):
            tensor = make(count).fill_(rank)
            works = [dist.all_reduce(tensor, async_op=True), dist.broadcast(tensor[count // 2:], 1, async_op=True),
                     dist.all_reduce(tensor[:50], async_op=True), dist.all_reduce(tensor, async_op=True)]
            for work in reversed(works):
                work.wait()
            total = size * (size - 1) / 2
            assert bool((tensor[:50] == total * size * size).all()) and bool((tensor[50:] == total * size).all()), count


def coalesced_calls() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    tensors = [torch.full((n,), float(rank + 1)) for n in (1, 1000, 50_000)]
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all(torch.equal(tensor, torch.full_like(tensor, size * (size + 1) / 2)) for tensor in tensors)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        output = torch.zeros(size)
        dist.all_to_all_single(output, torch.full((size,), float(rank)))
        dist.all_reduce(tensors[0])
    manager.wait()
    assert output.tolist() == [float(other) for other in range(size)]
    inputs_of_rank = [torch.full((2, 3), float(rank)), torch.full((5,), float(rank))]
    outputs = [[torch.zeros_like(one) for one in inputs_of_rank] for _ in range(size)]
    dist.all_gather_coalesced(outputs, inputs_of_rank)
    assert all(bool((one == other).all()) for other in range(size) for one in outputs[other])


def any_source() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.zeros(100)
            source = dist.recv(tensor)
            assert bool((tensor == source).all())
            seen.add(source)
        assert seen == set(range(1, size))
        work = dist.irecv(torch.zeros(1))
        assert not work.is_completed()
        dist.send(torch.ones(1), 1)
        work.wait()
        assert work._source_rank() == 1
    else:
        dist.send(torch.full((100,), float(rank)), 0)
        if rank == 1:
            tensor = torch.zeros(1)
            dist.recv(tensor, 0)
            dist.send(tensor, 0)


def tags() -> None:
    """Messages with different tags must be receivable in any order, and messages with equal tags in
    send order."""
    size, rank = dist.get_world_size(), dist.get_rank()
    if rank == 0:
        for peer in range(1, size):
            works = [dist.isend(torch.full((1000 * tag,), float(tag)), peer, tag=tag) for tag in (1, 2, 3)]
            works.append(dist.isend(torch.full((10,), 10.0), peer))
            works += [dist.isend(torch.full((5,), float(value)), peer, tag=7) for value in (71, 72)]
            for work in works:
                work.wait()
        for _ in range(size - 1):
            tensor = torch.zeros(3)
            source = dist.recv(tensor, tag=5)
            assert tensor.tolist() == [500.0 + source] * 3
        for peer in range(1, size):
            tensor = torch.zeros(3)
            dist.recv(tensor, peer, tag=4)
            assert tensor.tolist() == [400.0 + peer] * 3
    else:
        tensors = {tag: torch.zeros(1000 * tag) for tag in (3, 1, 2)}
        works = [dist.irecv(tensor, 0, tag=tag) for tag, tensor in tensors.items()]
        plain = torch.zeros(10)
        works.append(dist.irecv(plain, 0))
        for work in reversed(works):
            work.wait()
        assert all(bool((tensor == tag).all()) for tag, tensor in tensors.items()) and bool((plain == 10).all())
        last = [torch.zeros(5) for _ in range(2)]
        for tensor in last:
            dist.recv(tensor, 0, tag=7)
        assert [tensor[0].item() for tensor in last] == [71, 72]
        sent = dist.isend(torch.full((3,), 400.0 + rank), 0, tag=4)
        dist.send(torch.full((3,), 500.0 + rank), 0, tag=5)
        sent.wait()


def messages_overtake_collectives() -> None:
    """A message that waits for its receiver must not delay a collective or a message from another
    rank."""
    size, rank = dist.get_world_size(), dist.get_rank()
    tensor = torch.full((1000,), float(rank))
    if rank == 0:
        sent = dist.isend(torch.full((50_000,), 7.0), 1)
    dist.all_reduce(tensor)
    assert tensor[0] == size * (size - 1) / 2
    if rank == 0:
        late = torch.zeros(1)
        received = dist.irecv(late, 1)
        sent.wait()
        received.wait()
        assert late.item() == 3
    elif rank == 1:
        dist.send(torch.tensor([3.0]), 0)
        message = torch.zeros(50_000)
        dist.recv(message, 0)
        assert bool((message == 7).all())


def futures() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    tensor = torch.full((5,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    value = future.wait()
    assert isinstance(value, list) and value[0].data_ptr() == tensor.data_ptr()
    parts = [torch.zeros(3) for _ in range(size)]
    value = dist.all_gather(parts, torch.full((3,), float(rank)), async_op=True).get_future().wait()
    assert [one[0].item() for one in value] == list(range(size))
    doubled = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    assert torch.equal(doubled.wait(), tensor * 2)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert work.get_future().done() and work.is_success()


def callbacks_of_two_streams() -> None:
    """A callback may wait for a future of another stream, even if only one thread is idle."""
    size, other = dist.get_world_size(), dist.new_group()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()  # leaves an idle thread
    for _ in range(20):
        if dist.get_rank() == size - 1:
            time.sleep(0.01)  # the other ranks add their callbacks before the first all-reduce ends
        works = [dist.all_reduce(torch.ones(100), group=group, async_op=True) for group in (None, other)]
        first, second = (work.get_future() for work in works)
        result = first.then(lambda done, second=second: second.wait()[0] + done.value()[0]).wait()
        assert torch.equal(result, torch.full((100,), 2.0 * size))


def waiting_callbacks() -> None:
    """A callback may start a collective and wait for it, and that collective's callback may do the
    same."""
    size, rank = dist.get_world_size(), dist.get_rank()

    def next_sum(depth: int, done):
        tensor = torch.full((100,), float(rank + depth))
        future = dist.all_reduce(tensor, async_op=True).get_future()
        if depth < 4:
            future = future.then(functools.partial(next_sum, depth + 1))
        return future.wait()

    for _ in range(20):
        result = next_sum(0, None)
        while isinstance(result, list):
            result = result[0]
        assert bool((result == size * (size - 1) / 2 + 4 * size).all())


def inference_tensors() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    with torch.inference_mode():
        tensor = torch.full((1000,), float(rank))
        whole = torch.zeros(3000)
        strided = whole[::3]
        strided.fill_(rank)
    for one in (tensor, strided):
        dist.all_reduce(one, async_op=True).wait()
        assert one[0].item() == size * (size - 1) / 2
    with torch.inference_mode():
        dist.all_reduce(strided, op=dist._make_nccl_premul_sum(2.0))
        output = torch.zeros(2 * size)
        dist.all_gather_into_tensor(output, torch.full((2,), float(rank)))
    assert output.tolist() == [float(other) for other in range(size) for _ in range(2)]


def complex_tensors() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype in (torch.complex64, torch.complex128):
        tensor = torch.full((10,), complex(rank, 1), dtype=dtype)
        dist.all_reduce(tensor)
        assert bool((tensor == complex(size * (size - 1) / 2, size)).all())
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        assert bool((tensor == complex(size * (size - 1) / 2, size)).all())


def sparse_sums() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    dense = torch.zeros(20, 3)
    dense[rank] = rank + 1
    dense[10] = 1
    tensor = dense.to_sparse(1)
    dist.all_reduce(tensor)
    expected = torch.zeros(20, 3)
    for other in range(size):
        expected[other] = other + 1
    expected[10] = size
    assert torch.equal(tensor.to_dense(), expected)
    raises(TypeError, "supports only ReduceOp.SUM", lambda: dist.all_reduce(tensor, op=dist.ReduceOp.MAX))


def sequence_numbers() -> None:
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = group._get_sequence_number_for_group()
    for _ in range(3):
        dist.all_reduce(torch.zeros(1))
    assert group._get_sequence_number_for_group() == before + 3


def statistics() -> None:
    size = dist.get_world_size()
    hccl_torch.reset_stats()
    for _ in range(3):
        dist.all_reduce(torch.zeros(1000))
    dist.all_reduce(hccl_torch.empty(1000))
    output = torch.zeros(size * 10, dtype=torch.int64)
    dist.all_gather_into_tensor(output, torch.zeros(10, dtype=torch.int64))
    counts = hccl_torch.stats()
    assert counts["all_reduce"] == {"calls": 4, "bytes": 16_000, "zero_copy": 1, "staged": 3}, counts
    assert counts["all_gather_into_tensor"] == {"calls": 1, "bytes": 80, "zero_copy": 0, "staged": 1}, counts


def tensors_of_shared_memory() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    for extents, dtype in (((1000, 3), torch.float32), ((17,), torch.bfloat16), ((0,), torch.int8), ((), torch.float64)):
        tensor = hccl_torch.empty(extents, dtype=dtype)
        assert tensor.shape == torch.Size(extents) and tensor.dtype == dtype and tensor.is_contiguous()
        tensor.fill_(rank + 1)
        dist.all_reduce(tensor)
        assert bool((tensor == size * (size + 1) // 2).all())
    tensor = hccl_torch.empty(4, 1000)
    tensor.copy_(values(rank, 4000, torch.float32).view(4, 1000))
    part = tensor[1:3]
    dist.all_reduce(part)
    assert same(part.flatten(), sum(inputs(4000, torch.float32))[1000:3000])
    tensor.resize_(10, 1000).fill_(1)
    dist.all_reduce(tensor)
    assert bool((tensor == size).all())
    used = hccl_torch.memory_stats()["used_bytes"]
    del tensor, part
    assert hccl_torch.memory_stats()["used_bytes"] < used
    hccl_torch.empty_cache()
    assert hccl_torch.memory_stats()["cached_bytes"] == 0


def exceptions_keep_groups_usable() -> None:
    """After an error in a call or within coalesced calls, tensors must be unchanged and other
    groups must work."""
    size, rank = dist.get_world_size(), dist.get_rank()
    other = dist.new_group()
    tensor = torch.full((30_000,), 5.0)
    raises(ValueError, "has the ranks 0 to",
           lambda: other._get_backend(torch.device("cpu")).broadcast([tensor], c10d_options(size)))
    tensor.fill_(9)
    dist.barrier()
    assert bool((tensor == 9).all())
    try:
        with dist._coalescing_manager(group=other, device=torch.device("cpu")):
            dist.all_reduce(tensor, group=other)
            raise KeyError
    except KeyError:
        pass
    number = torch.ones(4)
    dist.all_reduce(number)
    assert number[0] == size
    third = dist.new_group()
    dist.all_reduce(number, group=third)
    assert number[0] == size * size


def c10d_options(root: int):
    options = dist.BroadcastOptions()
    options.rootRank = root
    return options


def results_arrive_in_call_order() -> None:
    """Results of operations that the program does not wait for must arrive in call order."""
    size, rank = dist.get_world_size(), dist.get_rank()
    parts = [torch.zeros(20_000) for _ in range(size)]
    works = [dist.all_gather(parts, torch.full((20_000,), float(10 * turn + rank)), async_op=True) for turn in range(3)]
    works[-1].wait()
    assert [part[0].item() for part in parts] == [20.0 + other for other in range(size)]
    for work in works:
        work.wait()
    assert [part[0].item() for part in parts] == [20.0 + other for other in range(size)]
    tensors = [torch.full((20_000,), float(rank)) for _ in range(size)]
    work = dist.all_reduce(tensors[0], async_op=True)
    output = torch.zeros(20_000)
    dist.reduce_scatter(output, tensors)
    total = size * (size - 1) / 2
    assert output[0] == (total * size if rank == 0 else total)
    work.wait()


def futures_of_other_streams() -> None:
    """The future of a pending receive must not delay the futures of collectives."""
    rank = dist.get_rank()
    message = torch.zeros(1)
    if rank == 0:
        late = dist.irecv(message, 1).get_future()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
    if rank == 1:
        dist.send(torch.ones(1), 0)
    if rank == 0:
        late.wait()
        assert message.item() == 1


def bad_arguments() -> None:
    """Bad arguments must raise a Python error on the calling rank only, and the group must remain
    usable."""
    size = dist.get_world_size()
    raises(ValueError, "but the output has", lambda: dist.all_gather_into_tensor(torch.zeros(size * 3 + 1), torch.zeros(3)))
    raises(ValueError, "divisible by", lambda: dist.all_to_all_single(torch.zeros(size + 1), torch.zeros(size + 1)))
    raises(RuntimeError, "has not ended: Timed out waiting 50ms; check that every rank",
           lambda: dist.irecv(torch.zeros(1), (dist.get_rank() + 1) % size).wait(datetime.timedelta(milliseconds=50)))
    dist.barrier()
    dist.send(torch.zeros(1), (dist.get_rank() - 1) % size)
    dist.barrier()
