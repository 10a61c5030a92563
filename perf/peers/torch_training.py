# SPDX-License-Identifier: Apache-2.0
"""One rank of a training run with DistributedDataParallel or fully_shard.

Rank 0 prints one JSON object: the median step time with and without synchronisation. torch_backends.py starts this program
under torchrun."""
import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist

# Number and width of the layers, which determine the size of the parameters and of the gradients.
MODELS = {"34 MB": (8, 1024), "400 MB": (6, 4096)}


def make_model(name, device):
    layers, width = MODELS[name]
    torch.manual_seed(0)
    return torch.nn.Sequential(
        *[layer for _ in range(layers) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]).to(device)


def step_of(model, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return step


def median_time(step, steps):
    times = []
    for _ in range(steps + 2):
        dist.barrier()
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--mode", choices=("ddp", "fsdp"), required=True)
    parser.add_argument("--allocator", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu, or hpu with HCCL_EMU_HPU=1")
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.allocator:
        import hccl_torch

        hccl_torch.install_allocator()
    dist.init_process_group(options.backend)
    data = torch.randn(16, MODELS[options.model][1], device=options.device)
    alone = median_time(step_of(make_model(options.model, options.device), data), options.steps)
    if options.mode == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(make_model(options.model, options.device))
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        model = make_model(options.model, options.device)
        mesh = init_device_mesh(options.device, (dist.get_world_size(),))
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    together = median_time(step_of(model, data), options.steps)
    if dist.get_rank() == 0:
        print(json.dumps({"together_ms": together, "alone_ms": alone}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
