# SPDX-License-Identifier: Apache-2.0
"""Tests how receives are matched with messages: receives from any rank, by tag, and from the rank
itself. Run on every rank."""
import ctypes
import datetime
import mmap
import random
import threading
import time

import torch
import torch.distributed as dist

from operations import raises

MOMENT = datetime.timedelta(milliseconds=50)
LONG = datetime.timedelta(seconds=60)


def wait_all(works) -> None:
    for work in works:
        work.wait(LONG)


def number(count: int = 1) -> torch.Tensor:
    return torch.full((count,), -1.0)


def directed_behind_any() -> None:
    """A receive from any rank must get the first message, and a receive from rank 1 that was posted
    later must get the second."""
    for count, tag in ((1, 0), (50_000, 0), (1, 5), (50_000, 5)):
        if dist.get_rank() == 0:
            tensors = [number(count) for _ in range(4)]
            works = [dist.irecv(tensors[0], tag=tag), dist.irecv(tensors[1], 1, tag=tag),
                     dist.irecv(tensors[2], tag=tag), dist.irecv(tensors[3], 1, tag=tag)]
            dist.barrier()
            wait_all(reversed(works))
            assert [one[0].item() for one in tensors] == [0, 1, 2, 3], (count, tag, [one[0] for one in tensors])
            assert all(work._source_rank() == 1 for work in works)
        else:
            dist.barrier()
            if dist.get_rank() == 1:
                for value in range(4):
                    dist.send(torch.full((count,), float(value)), 0, tag=tag)
        dist.barrier()


def any_behind_directed() -> None:
    """A receive from rank 1 must get the first message, and a receive from any rank posted later
    must get the second, while an earlier receive with a different tag waits."""
    if dist.get_rank() == 0:
        tensors = [number() for _ in range(3)]
        works = [dist.irecv(tensors[0], 1, tag=5), dist.irecv(tensors[1], 1, tag=6), dist.irecv(tensors[2], tag=6)]
        dist.barrier()
        works[2].wait(LONG)
        works[1].wait(LONG)
        assert [one.item() for one in tensors[1:]] == [0, 1], tensors
        dist.send(torch.zeros(1), 1)
        works[0].wait(LONG)
        assert tensors[0].item() == 2
    else:
        dist.barrier()
        if dist.get_rank() == 1:
            dist.send(torch.tensor([0.0]), 0, tag=6)
            dist.send(torch.tensor([1.0]), 0, tag=6)
            dist.recv(number(), 0)
            dist.send(torch.tensor([2.0]), 0, tag=5)


def directed_waits_for_its_own_source() -> None:
    """A receive from rank 1 that was queued behind a receive from any rank must take only a message
    from rank 1."""
    rank = dist.get_rank()
    if rank == 0:
        first, second = number(), number()
        works = [dist.irecv(first), dist.irecv(second, 1)]
        dist.send(torch.zeros(1), 2)
        works[0].wait(LONG)
        assert first.item() == 2 and works[0]._source_rank() == 2
        raises(dist.DistBackendError, "has not ended", lambda: works[1].wait(MOMENT))
        dist.send(torch.zeros(1), 1)
        works[1].wait(LONG)
        assert second.item() == 1
    elif rank in (1, 2):
        dist.recv(number(), 0)
        dist.send(torch.tensor([float(rank)]), 0)


def unmatched_messages_stay_queued() -> None:
    """A receive by tag from any rank must leave a message without a tag to another receive."""
    rank = dist.get_rank()
    if rank == 0:
        tagged = number()
        work = dist.irecv(tagged, tag=5)
        dist.barrier()
        raises(dist.DistBackendError, "has not ended", lambda: work.wait(MOMENT))
        plain = number(1000)
        dist.recv(plain, 1)
        assert bool((plain == 1).all())
        dist.send(torch.zeros(1), 1)
        work.wait(LONG)
        assert tagged.item() == 5
    else:
        sent = dist.isend(torch.ones(1000), 0) if rank == 1 else None
        dist.barrier()
        if sent:
            sent.wait(LONG)
            dist.recv(number(), 0)
            dist.send(torch.tensor([5.0]), 0, tag=5)


def tags_beside_any() -> None:
    """While a receive without a tag from any rank waits, messages with and without tags must be
    able to overtake each other."""
    if dist.get_rank() == 0:
        plain, first, second = number(1000), number(1000), number(1000)
        works = [dist.irecv(plain), dist.irecv(first, 1, tag=5), dist.irecv(second, tag=6)]
        dist.barrier()
        wait_all(works)
        assert [one[999].item() for one in (plain, first, second)] == [0, 5, 6]
    else:
        dist.barrier()
        if dist.get_rank() == 1:
            for tag in (6, 0, 5):
                dist.send(torch.full((1000,), float(tag)), 0, tag=tag)


def tagged_beside_pending() -> None:
    """A receive by tag must get its message while an earlier receive without a tag waits for the
    same rank."""
    if dist.get_rank() == 0:
        tagged, plain, early = number(), number(), number()
        dist.recv(tagged, 1, tag=8)
        works = [dist.irecv(plain, 1), dist.irecv(early, 1, tag=7)]
        works[1].wait(LONG)
        assert early.item() == 7
        dist.send(torch.zeros(1), 1)
        works[0].wait(LONG)
        assert plain.item() == 0
    elif dist.get_rank() == 1:
        early = dist.isend(torch.tensor([7.0]), 0, tag=7)
        dist.send(torch.tensor([8.0]), 0, tag=8)
        early.wait(LONG)
        dist.recv(number(), 0)
        dist.send(torch.tensor([0.0]), 0)


def parts_of_one_tensor() -> None:
    """Two receives into different parts of one tensor must not wait for each other."""
    rank = dist.get_rank()
    if rank == 0:
        whole = torch.zeros(2, 50_000)
        works = [dist.irecv(whole[0], 1), dist.irecv(whole[1], 2)]
        for peer in (2, 1):
            dist.send(torch.zeros(1), peer)
            works[peer - 1].wait(LONG)
            assert bool((whole[peer - 1] == peer).all())
    else:
        dist.recv(number(), 0)
        dist.send(torch.full((50_000,), float(rank)), 0)


def halo_exchange() -> None:
    """Parts of a tensor must be receivable while other parts are sent, even if their elements
    interleave."""
    every = slice(None)
    parts = [  # shape, and pairs of received and sent parts
        ((64, 64), [((every, 0), (every, 1)), ((every, -1), (every, -2))]),
        ((200, 100), [((every, slice(40)), (every, slice(40, 80))), ((every, 80), (every, 99))]),
        ((4, 50_000), [((0,), (1,)), ((3,), (2,))]),
        ((9, 9, 9), [((every, 0, slice(8)), (every, slice(1, 9), 0))]),
    ]
    mine, peer = float(dist.get_rank()), 1 - dist.get_rank()
    for shape, pairs in parts:
        whole = torch.full(shape, mine)
        works = [dist.irecv(whole[received], peer) for received, _ in pairs]
        works += [dist.isend(whole[sent], peer) for _, sent in pairs]
        wait_all(works)
        for received, sent in pairs:
            assert bool((whole[received] == peer).all()) and bool((whole[sent] == mine).all()), (shape, received)


def received_twice() -> None:
    """If two messages are received into the same memory, the second message's data must remain.
    Neither receive may wait for the other's message."""
    for first, second in ((slice(None), slice(None)), (slice(None, None, 2), slice(0, 10)), (slice(0, 10), slice(0, 10, 3)),
                          (slice(None, None, 2), slice(None, None, 3)), (slice(0, 60_000), slice(20, 30))):
        whole = torch.zeros(100_000)
        if dist.get_rank() == 0:
            works = [dist.irecv(whole[first], 1), dist.irecv(whole[second], 1), dist.isend(whole[90_000:].clone(), 1)]
            works[1].wait(LONG)
            assert bool((whole[second] == 2).all()), (first, second)
            wait_all(works)
            expected = torch.zeros(100_000)
            expected[first], expected[second] = 1, 2
            assert torch.equal(whole, expected), (first, second)
        elif dist.get_rank() == 1:
            dist.recv(torch.zeros(10_000), 0)
            dist.send(torch.ones_like(whole[first]), 0)
            dist.send(torch.full_like(whole[second], 2), 0)
        dist.barrier()


def sent_during_its_broadcast() -> None:
    """A tensor that a collective only reads must be sendable at the same time."""
    tensor = torch.full((100_000,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        works = [dist.broadcast(tensor, 0, async_op=True), dist.isend(tensor, 1)]
        wait_all(works)
    else:
        if dist.get_rank() == 1:
            dist.recv(tensor, 0)
            assert bool((tensor == 0).all())
        dist.broadcast(tensor, 0)


def other_calls_overtake_a_waiting_call() -> None:
    """While a call waits for an earlier operation on its tensor, another thread must be able to
    send a message that the other rank needs earlier."""
    tensor = torch.ones(1000, 2)[:, 0]
    if dist.get_rank() == 0:
        first = dist.all_reduce(tensor, async_op=True)
        thread = threading.Thread(target=lambda: dist.all_reduce(tensor))
        thread.start()
        time.sleep(0.2)
        dist.isend(torch.ones(1), 1).wait(LONG)
        thread.join()
        first.wait(LONG)
    else:
        dist.recv(number(), 0)
        for _ in range(2):
            dist.all_reduce(tensor)
    assert bool((tensor == 4).all())


def mixed_traffic() -> None:
    """Random receives, from one rank or from any, must get the messages of each rank and tag in
    order."""
    size, rank, rounds = dist.get_world_size(), dist.get_rank(), 60
    choices = random.Random(8)
    for tags in ((0,), (1, 2, 3)):
        if rank == 0:
            received = []
            for number_of_round in range(rounds):
                for tag in tags:
                    source = choices.choice([None, *range(1, size)])
                    tensor = number(3)
                    received.append((tag, tensor, dist.irecv(tensor, source, tag=tag), source))
                if number_of_round % 7 == 0:
                    received[choices.randrange(len(received))][2].wait(LONG)
            for _ in range((size - 2) * rounds):
                for tag in tags:
                    tensor = number(3)
                    received.append((tag, tensor, dist.irecv(tensor, tag=tag), None))
            seen: dict[tuple[int, int], int] = {}
            for tag, tensor, work, source in received:
                work.wait(LONG)
                sender, turn = int(tensor[0]), int(tensor[2])
                assert source in (None, sender) and work._source_rank() == sender and tensor[1] == tag
                assert turn == seen.setdefault((sender, tag), 0), (sender, tag, turn, seen)
                seen[sender, tag] += 1
        else:
            works = [dist.isend(torch.tensor([float(rank), float(tag), float(turn)]), 0, tag=tag)
                     for turn in range(rounds) for tag in tags]
            wait_all(works)
        dist.barrier()


def to_itself() -> None:
    """A rank must receive messages that it sends to itself before or after the receive."""
    rank = dist.get_rank()
    for count in (1, 50_000):
        for tag in (0, 4):
            for source in (rank, None):
                tensors = [number(count) for _ in range(4)]
                works = [dist.irecv(tensor, source, tag=tag) for tensor in tensors[:2]]
                assert not works[0].is_completed()
                sent = [torch.full((count,), float(value)) for value in range(4)]
                works += [dist.isend(tensor, rank, tag=tag) for tensor in sent]
                works += [dist.irecv(tensor, source, tag=tag) for tensor in tensors[2:]]
                wait_all(works)
                assert all(torch.equal(*pair) for pair in zip(tensors, sent)), (count, tag)
                assert works[0]._source_rank() == rank
    future = dist.irecv(tensors[0], rank).get_future()
    dist.isend(torch.arange(50_000.0)[:, None].expand(-1, 2)[:, 1], rank)
    assert torch.equal(future.wait()[0], torch.arange(50_000.0))
    work = dist.irecv(number(), rank)
    dist.isend(torch.zeros(2), rank)
    raises(dist.DistBackendError, "has sent 8 bytes with tag 0 for a tensor of 4", lambda: work.wait(LONG))
    dist.barrier()


def to_itself_in_batches() -> None:
    """A batch must pair the sends of a rank to itself with the receives from itself, in either
    order. An unpaired call must fail immediately."""
    rank = dist.get_rank()
    for receive_first in (True, False):
        tensor, sent = number(20), torch.full((20,), float(rank))
        operations = [dist.P2POp(dist.irecv, tensor, rank), dist.P2POp(dist.isend, sent, rank)]
        for work in dist.batch_isend_irecv(operations if receive_first else operations[::-1]):
            work.wait()
        assert torch.equal(tensor, sent)
    for operation in (dist.irecv, dist.isend):
        raises(dist.DistBackendError, "put both calls into one group",
               lambda operation=operation: dist.batch_isend_irecv([dist.P2POp(operation, number(), rank)]))
    raises(ValueError, "rank", lambda: dist.send(number(), rank))
    dist.all_reduce(number())


def results_at_once() -> None:
    """The results of a pending receive and of its future must both be the receive's tensor."""
    peer = 1 - dist.get_rank()
    for source, tag in ((peer, 0), (None, 0), (None, 6), (peer, 6)):
        tensor = number()
        work = dist.irecv(tensor, source, tag=tag)
        assert [one.data_ptr() for one in work.result()] == [tensor.data_ptr()], (source, tag)
        future = work.get_future()
        dist.barrier()
        dist.isend(torch.tensor([float(tag)]), peer, tag=tag)
        assert future.wait()[0].data_ptr() == tensor.data_ptr() and tensor.item() == tag
        dist.barrier()


def tags_in_batches() -> None:
    """A batch must match messages by tag, and messages with equal tags in call order."""
    rank, peer = dist.get_rank(), 1 - dist.get_rank()
    for count in (1, 50_000):
        sent = [torch.full((count,), 10.0 * rank + value) for value in range(5)]
        received = [number(count) for _ in sent]
        sends = [dist.P2POp(dist.isend, tensor, peer, tag=tag) for tensor, tag in zip(sent, (1, 2, 0, 9, 2))]
        receives = [dist.P2POp(dist.irecv, tensor, peer, tag=tag) for tensor, tag in zip(received, (9, 2, 1, 2, 0))]
        for work in dist.batch_isend_irecv(receives + sends if rank == 0 else sends + receives):
            work.wait()
        assert [tensor[-1].item() - 10 * peer for tensor in received] == [3, 1, 0, 4, 2], received


def self_receive_without_send_times_out() -> None:
    """A receive from the rank itself, or from any rank, must fail at the group's time-out if no
    message was sent."""
    rank = dist.get_rank()
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    raises(dist.DistBackendError, "has sent itself no message", lambda: dist.irecv(number(), rank, group=group).wait())
    raises(dist.DistBackendError, "no rank has sent a message", lambda: dist.irecv(number(), group=group).wait())
    dist.barrier()


def page_without_access(access: int) -> torch.Tensor:
    """Returns a tensor of 16 pages, the ninth of which has only the given access."""
    memory = mmap.mmap(-1, 16 * mmap.PAGESIZE)
    tensor = torch.frombuffer(memory, dtype=torch.float32)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(tensor.data_ptr() + 8 * mmap.PAGESIZE), mmap.PAGESIZE, access) == 0
    return tensor


def inaccessible_memory() -> None:
    """Memory that cannot be read or written must make the call fail, and the group must remain
    usable."""
    rank, peer = dist.get_rank(), 1 - dist.get_rank()
    closed, locked = page_without_access(0), page_without_access(mmap.PROT_READ)
    fine = torch.ones_like(locked)
    for tensor in (closed, locked):
        for call in (lambda: dist.recv(tensor, peer), lambda: dist.irecv(tensor), lambda: dist.irecv(tensor, peer, tag=3),
                     lambda: dist.all_gather([fine, tensor], fine), lambda: dist.all_reduce(tensor[::2]),
                     lambda: dist.gather(fine, [fine, tensor] if rank == 0 else None) if rank == 0 else dist.recv(tensor, 0)):
            raises(ValueError, "cannot be written", call)
    for call in (lambda: dist.send(closed, peer), lambda: dist.isend(closed, rank), lambda: dist.isend(closed, peer, tag=3),
                 lambda: dist.all_gather([fine, fine.clone()], closed[::2]),
                 lambda: dist.reduce_scatter(fine, [closed, fine])):
        raises(ValueError, "cannot be read", call)
    dist.isend(locked, peer)
    dist.recv(fine, peer)
    assert torch.equal(fine, locked)
    dist.all_reduce(fine)


def disjoint_from_a_collective() -> None:
    """A message must not wait for a collective that writes to other elements of the same tensor."""
    inner, every = slice(1, -1), slice(None)
    parts = [  # shape, reduced part, and sent and received part
        ((32, 65), (every, slice(None, None, 2)), (every, 1)),
        ((10, 10, 10), (inner, inner, inner), (inner, 0, inner)),
        ((7, 300, 5), (every, inner, every), (every, 0, slice(1, 3))),
    ]
    rank, peer = dist.get_rank(), 1 - dist.get_rank()
    for shape, summed, moved in parts:
        for first_sends in (False, True):
            whole = torch.full(shape, rank + 1.0)
            sum_, face = whole[summed], whole[moved]
            message = dist.isend if first_sends == (rank == 0) else dist.irecv
            if rank == 0:
                works = [dist.all_reduce(sum_, async_op=True), message(face, peer)]
            else:
                message(face.clone() if message is dist.isend else face, peer).wait(LONG)
                works = [dist.all_reduce(sum_, async_op=True)]
            wait_all(works)
            assert bool((sum_ == 3).all()), (shape, first_sends)
            assert bool((face == (peer + 1 if message is dist.irecv else rank + 1)).all()), (shape, first_sends)


def behind_a_collective() -> None:
    """A message that has already arrived must be stored only after an earlier collective on the
    same tensor."""
    rank = dist.get_rank()
    for count in (100, 50_000):
        message, other = torch.arange(count), torch.zeros(count, dtype=torch.int64)
        for tag, source in ((3, 1), (3, None), (0, 0), (5, 0)):
            tensor = torch.ones(count, 2, dtype=torch.int64)[:, 0]
            kept = source != 0
            if rank == 0:
                if kept:
                    dist.recv(other, 1, tag=4)
                sum_ = dist.all_reduce(tensor, async_op=True)
                received = dist.irecv(tensor, source, tag=tag)
                if not kept:
                    dist.isend(message, 0, tag=tag)
                received.wait(LONG)
                sum_.wait(LONG)
                assert torch.equal(tensor, message), (count, tag, source)
            else:
                if kept:
                    dist.send(message, 0, tag=tag)
                    dist.send(other, 0, tag=4)
                time.sleep(0.2)
                dist.all_reduce(tensor)
            dist.barrier()


def gaps_are_untouched() -> None:
    """A message of widely spaced elements must touch only the pages that contain them."""
    memory = mmap.mmap(-1, 1 << 30)
    tensor = torch.frombuffer(memory, dtype=torch.float32)[:: 1 << 24]
    before = resident_bytes()
    if dist.get_rank() == 0:
        dist.send(tensor, 1)
    else:
        dist.recv(tensor, 0)
    assert resident_bytes() - before < 16 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def memory_protected_later() -> None:
    """If memory becomes read-only after a receive into it is posted, the receive must fail when the backend copies the
    message there."""
    libc = ctypes.CDLL(None, use_errno=True)
    for tag in (0, 3):
        memory = mmap.mmap(-1, 16 * mmap.PAGESIZE)
        tensor = torch.frombuffer(memory, dtype=torch.float32)[::2]
        if dist.get_rank() == 0:
            received = dist.irecv(tensor, 1, tag=tag)
            assert libc.mprotect(ctypes.c_void_p(tensor.data_ptr()), 16 * mmap.PAGESIZE, mmap.PROT_READ) == 0
            dist.send(torch.ones(1), 1)
            raises(Exception, "cannot be written", lambda: received.wait(LONG))
        else:
            dist.recv(number(), 0)
            dist.send(tensor, 0, tag=tag)
    dist.all_reduce(number())
