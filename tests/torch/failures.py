# SPDX-License-Identifier: Apache-2.0
"""Functions that ranks run while their group breaks or their program exits. The functions print the
errors that they get, and the tests check the output and the exit codes."""
import datetime
import os
import signal
import time

import torch
import torch.distributed as dist


def report(call) -> None:
    """Makes a call that must fail, prints its error and duration, and exits with 7. Exits with 8 if the
    call succeeds."""
    start = time.monotonic()
    try:
        call()
    except dist.DistBackendError as error:
        print(f"rank {dist.get_rank()} after {time.monotonic() - start:.1f} s: {error}", flush=True)
        os._exit(7)
    print(f"rank {dist.get_rank()}: no error", flush=True)
    os._exit(8)


def exit_rank_1_after(seconds: float) -> None:
    """Makes rank 1 sleep for ``seconds`` and exit."""
    if dist.get_rank() == 1:
        time.sleep(seconds)
        os._exit(7)


def print_errors(*calls) -> None:
    for call in calls:
        try:
            call()
        except dist.DistBackendError as error:
            print(f"failed: {error}", flush=True)


def killed() -> None:
    """Kills rank 1 while the other ranks reduce."""
    def reduce_for_ever():
        tensor = torch.ones(1 << 18)
        for step in range(1_000_000):
            if dist.get_rank() == 1 and step == 100:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(tensor)
            tensor.fill_(1)

    report(reduce_for_ever)


def stopped() -> None:
    """Suspends rank 1, so that the other ranks fail when the group's time-out expires."""
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    if dist.get_rank() == 1:
        print(f"stopping {os.getpid()}", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    report(lambda: dist.all_reduce(tensor))


def late() -> None:
    """Makes a call on all ranks except rank 1."""
    exit_rank_1_after(30)
    report(lambda: dist.all_reduce(torch.ones(1000)))


def different_sizes() -> None:
    report(lambda: dist.all_reduce(torch.ones(1000 + dist.get_rank())))


def different_calls() -> None:
    tensor = torch.ones(1000)
    report(lambda: dist.all_reduce(tensor) if dist.get_rank() == 0 else dist.broadcast(tensor, 0))


def different_types() -> None:
    report(lambda: dist.all_reduce(torch.ones(1000, dtype=torch.float64 if dist.get_rank() else torch.float32)))


def aborted() -> None:
    """Aborts the group on another thread, which must unblock a waiting call."""
    import threading

    exit_rank_1_after(3)
    threading.Timer(0.5, lambda: dist.group.WORLD._get_backend(torch.device("cpu")).abort()).start()
    report(lambda: dist.all_reduce(torch.ones(1000)))


def changed_timeout() -> None:
    """Changes the time-out of an existing group. The new time-out must apply to later calls."""
    dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(datetime.timedelta(seconds=2))
    late()


def exit_without_destroy() -> None:
    dist.all_reduce(torch.ones(1000))
    raise SystemExit(0)


def exit_with_work_in_flight() -> None:
    """Rank 0 exits while its operation waits for the other ranks."""
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1 << 20), async_op=True)
    raise SystemExit(0)


def exception_on_one_rank() -> None:
    if dist.get_rank() == 1:
        raise RuntimeError("on purpose")
    report(lambda: dist.all_reduce(torch.ones(1000)))


def take_gil(done) -> None:
    """A callback that releases and reacquires the GIL 20 times."""
    for _ in range(20):
        time.sleep(0.001)
    done.value()


def exit_during_callbacks() -> None:
    """Exits while a future's callback runs and more callbacks are queued, as with
    DistributedDataParallel's hooks."""
    for _ in range(60):
        dist.all_reduce(torch.ones(1000), async_op=True).get_future().then(take_gil)
    raise SystemExit(3)


def exit_with_pending_futures() -> None:
    """Rank 0 exits while its futures wait for a rank that does not answer."""
    if dist.get_rank() == 1:
        time.sleep(600)
    dist.irecv(torch.ones(1)).get_future().then(take_gil)
    dist.irecv(torch.ones(1), 1, tag=4).get_future().then(take_gil)
    dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future().then(take_gil)
    raise SystemExit(3)


def exit_after_the_programs_exit_handler() -> None:
    """Uses the group and waits for futures in the program's exit handler, which must work."""
    import atexit

    def reduce_again() -> None:
        tensor = torch.ones(1000)
        dist.all_reduce(tensor, async_op=True).get_future().then(take_gil).wait()
        print(f"rank {dist.get_rank()}: {tensor[0].item()}", flush=True)

    atexit.register(reduce_again)
    dist.all_reduce(torch.ones(1000), async_op=True).get_future().then(take_gil)
    raise SystemExit(3)


def killed_sender() -> None:
    """Kills rank 1 while rank 0 waits for a message with a tag from rank 1."""
    if dist.get_rank() == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    report(lambda: dist.recv(torch.ones(1), 1, tag=5))


def late_messages() -> None:
    """Rank 1 sends nothing. Calls after the time-out must fail for the same reason."""
    exit_rank_1_after(30)
    print_errors(lambda: dist.recv(torch.ones(1), 1), lambda: dist.recv(torch.ones(1)), lambda: dist.send(torch.ones(1), 1))
    report(lambda: dist.all_reduce(torch.ones(1)))


def used_after_abort() -> None:
    """Makes calls on an aborted group; their errors must name the abort."""
    exit_rank_1_after(3)
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    print_errors(lambda: dist.send(torch.ones(1), 1), lambda: dist.recv(torch.ones(1)), lambda: dist.recv(torch.ones(1), 1, tag=3))
    report(lambda: dist.all_reduce(torch.ones(1000)))
