# SPDX-License-Identifier: Apache-2.0
"""Tests the errors that every rank gets when its group breaks, and that no resources are leaked."""
import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from launcher import FOLDER, Program, environment, free_port, run_ranks, session_members, torchrun, wait_until

HOST = socket.gethostname()


def residue() -> set[str]:
    return {entry.name for entry in Path("/dev/shm").iterdir()}


def start_ranks(ranks: int, function: str, **variables: str) -> list[Program]:
    """Starts ranks without a launcher, because a launcher would kill all ranks after the first
    failure."""
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    return [Program([sys.executable, str(FOLDER / "rank.py"), f"failures:{function}", "hccl"],
                    environment(**group, RANK=str(rank), LOCAL_RANK=str(rank), **variables)) for rank in range(ranks)]


def outputs(programs: list[Program], seconds: float = 90) -> list[tuple[int, str]]:
    return [program.finish(seconds) for program in programs]


def output_of_rank_0(function: str, code: int = 7, **variables: str) -> str:
    """Runs two ranks until rank 0 has exited with ``code``, and kills rank 1. Returns the output of
    rank 0."""
    programs = start_ranks(2, function, **variables)
    returned, output = programs[0].finish(60)
    programs[1].kill()
    programs[1].finish(10)
    assert returned == code, output
    return output


def require_complete(output: str, rank: int, operation: str, *more: str) -> None:
    """Requires that the error names the operation, its number, the group, the rank, the host and a
    remedy."""
    text = next(line for line in output.splitlines() if line.startswith(f"rank {rank} after"))
    assert re.search(rf"hccl_torch: {operation} #\d+ on group \S+ \(rank {rank} of \d+.*host {HOST}\) failed: ", text), text
    assert ";" in text.split(" failed: ")[1], text
    for one in more:
        assert one in text, text


@pytest.mark.parametrize("ranks", [2, 3])
def test_killed_rank(ranks: int) -> None:
    before = residue()
    results = outputs(start_ranks(ranks, "killed"))
    assert results[1][0] == -signal.SIGKILL
    for rank in set(range(ranks)) - {1}:
        assert results[rank][0] == 7, results[rank][1]
        require_complete(results[rank][1], rank, "all_reduce", "rank 1", HOST)
    assert residue() == before


def test_stopped_rank_times_out() -> None:
    output = output_of_rank_0("stopped", TEST_TIMEOUT="10")
    require_complete(output, 0, "all_reduce", "rank 1", "10 s")
    seconds = float(re.search(r"rank 0 after ([\d.]+) s", output)[1])
    assert seconds >= 9.5, "the call failed before the time-out"


@pytest.mark.parametrize("function", ["different_sizes", "different_calls", "different_types"])
def test_mismatch(function: str) -> None:
    for rank, (code, output) in enumerate(outputs(start_ranks(2, function))):
        assert code == 7, output
        require_complete(output, rank, "all_reduce|hccl_torch: broadcast" if rank else "all_reduce", "rank 1", "rank 0")


@pytest.mark.parametrize("function, seconds", [("late", "2"), ("changed_timeout", "300")])
def test_late_rank(function: str, seconds: str) -> None:
    output = output_of_rank_0(function, TEST_TIMEOUT=seconds)
    require_complete(output, 0, "all_reduce", "rank 1", "2 s", "a longer timeout")


def test_abort() -> None:
    output = output_of_rank_0("aborted")
    assert re.search(r"all_reduce #\d+ on group .* failed: rank 0 .*called hcclCommAbort", output), output


def test_killed_sender() -> None:
    output = output_of_rank_0("killed_sender")
    require_complete(output, 0, "recv", "rank 1")
    text = next(line for line in output.splitlines() if line.startswith("rank 0 after"))
    assert text.count("hccl_torch: ") == 1, text


@pytest.mark.parametrize("function, said, never_said", [
    ("late_messages", "give the group a longer timeout", "hcclEmulationSetTimeout"),
    ("used_after_abort", "was aborted; make another group", "unknown communicator")])
def test_calls_after_a_failure(function: str, said: str, never_said: str) -> None:
    output = output_of_rank_0(function, TEST_TIMEOUT="2")
    texts = [line for line in output.splitlines() if line.startswith(("failed: ", "rank 0 after"))]
    assert len(texts) == 4, output
    for text in texts:
        assert said in text and never_said not in text, text


def test_exit_without_destroy() -> None:
    run_ranks(2, "failures:exit_without_destroy", seconds=60)


def test_exit_with_work_in_flight() -> None:
    for code, output in outputs(start_ranks(2, "exit_with_work_in_flight"), seconds=60):
        assert code == 0, output


def test_exit_during_callbacks() -> None:
    for code, output in outputs(start_ranks(2, "exit_during_callbacks"), seconds=60):
        assert code == 3 and "terminate" not in output, output


def test_exit_with_pending_futures() -> None:
    output = output_of_rank_0("exit_with_pending_futures", code=3)
    assert "terminate" not in output, output


def test_exit_after_the_programs_exit_handler() -> None:
    for rank, (code, output) in enumerate(outputs(start_ranks(2, "exit_after_the_programs_exit_handler"), seconds=60)):
        assert code == 3 and f"rank {rank}: 2.0" in output, output


def test_exception_on_one_rank() -> None:
    results = outputs(start_ranks(2, "exception_on_one_rank"), seconds=60)
    assert results[1][0] == 1 and "on purpose" in results[1][1]
    assert results[0][0] == 7, results[0][1]
    require_complete(results[0][1], 0, "all_reduce", "rank 1")


def test_torchrun_leaves_no_process_behind() -> None:
    before = residue()
    program = Program(torchrun(3, str(FOLDER / "rank.py"), "failures:killed", "hccl"), environment())
    output, _ = program.process.communicate(timeout=120)
    wait_until(lambda: not session_members(program.process.pid))
    assert program.process.returncode != 0
    assert residue() == before
    assert "all_reduce" in output and "rank 1" in output, output
