# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier with DistributedDataParallel. Rank 0 prints the loss and the median step time.

torchrun --standalone --nproc-per-node 4 train.py [--backend hccl|gloo] [--steps N]
"""
import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
                               torch.nn.Linear(256, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="hccl")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    generator = torch.Generator().manual_seed(dist.get_rank())
    data = torch.randn(32, 64, generator=generator)
    target = data[:, :10].argmax(1)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print(f"{dist.get_backend()}: {dist.get_world_size()} ranks, loss {mean.item() / dist.get_world_size():.6f}, "
              f"{1000 * statistics.median(times):.2f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
