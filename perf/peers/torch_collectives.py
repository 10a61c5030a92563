# SPDX-License-Identifier: Apache-2.0
"""One rank of the race between the backends hccl and gloo: the same collectives on both, taking turns.

Rank 0 writes the samples to the file named by --json. torch_backends.py starts this program under
torchrun."""
import argparse
import json
import time

import torch
import torch.distributed as dist

import hccl_torch
from console import parse_list, parse_size

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
WARM_UP = 2


def call_of(collective, group, input, output):
    """Returns a function that makes the call. `input` and `output` are both as large as an all-gather's output or a
    reduce-scatter's input."""
    part = input.tensor_split(dist.get_world_size())[0]
    return {"all_reduce": lambda: dist.all_reduce(input, group=group),
            "all_gather": lambda: dist.all_gather_into_tensor(output, part, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, output, group=group),
            "broadcast": lambda: dist.broadcast(input, 0, group=group),
            "all_to_all": lambda: dist.all_to_all_single(output, input, group=group)}[collective]


def slowest(seconds):
    """Returns the time of the slowest rank."""
    time_of_rank = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(time_of_rank, op=dist.ReduceOp.MAX)
    return time_of_rank.item()


def measure(call, calls):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return slowest((time.perf_counter() - start) / calls)


def calls_in(call, seconds):
    """Returns the number of calls that take about `seconds`, but at least 2 and at most 2000. The number is the same
    on all ranks."""
    measure(call, WARM_UP)
    return max(2, min(2000, int(seconds / max(measure(call, 2), 1e-7))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collectives", type=parse_list(str), default=list(COLLECTIVES))
    parser.add_argument("--sizes", type=parse_list(parse_size), required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="seconds of calls per cell and round")
    parser.add_argument("--json", required=True)
    options = parser.parse_args()
    dist.init_process_group("hccl")
    torch.set_num_threads(1)
    hccl, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
    backend = hccl._get_backend(torch.device("cpu"))
    ranks = dist.get_world_size()
    sides = {"gloo": (gloo, torch.empty), "plain": (hccl, torch.empty),
             "bucket": (hccl, lambda count: backend.allocate_tensor(count, dtype=torch.float32, device=torch.device("cpu"))),
             "allocator": (hccl, torch.empty)}
    samples = []
    for size in options.sizes:
        count = max(size // 4 // ranks, 1) * ranks
        memory = {side: [make(count).fill_(0.5) for _ in range(2)] for side, (_, make) in sides.items() if side != "allocator"}
        memory["allocator"] = [hccl_torch.empty(count).fill_(0.5) for _ in range(2)]
        for collective in options.collectives:
            calls = {side: call_of(collective, sides[side][0], *memory[side]) for side in sides}
            counts = {side: calls_in(calls[side], options.seconds) for side in sides}
            for number in range(options.rounds):
                order = list(sides)[number % len(sides):] + list(sides)[:number % len(sides)]
                for side in order:
                    seconds = measure(calls[side], counts[side])
                    samples.append({"collective": collective, "ranks": ranks, "size": size, "round": number, "side": side,
                                    "us": 1e6 * seconds})
                    for tensor in memory[side]:
                        tensor.fill_(0.5)  # keeps sums finite
    if dist.get_rank() == 0:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(samples, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
