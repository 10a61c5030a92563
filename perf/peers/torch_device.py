#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the emulated device on one rank: operations and a training step, alternating between "hpu" and
the CPU. Prints Markdown. Needs HCCL_EMU_HPU=1 and an environment with hccl-torch-hpu."""
import argparse
import os
import statistics
import time

import torch

DEVICES = ("cpu", "hpu")
OPERATIONS = {"a + b": lambda a, b: a + b, "a.add_(b)": lambda a, b: a.add_(b), "a * 2": lambda a, b: a * 2,
              "a.sum()": lambda a, b: a.sum(), "a.copy_(b)": lambda a, b: a.copy_(b), "a[1:]": lambda a, b: a[1:],
              "torch.empty_like(a)": lambda a, b: torch.empty_like(a)}
CALLS = 2000


def time_of(function):
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS


def show_operations(rounds):
    print("| operation on 8 floats | cpu | hpu | difference |\n|---|---|---|---|")
    for name, function in OPERATIONS.items():
        calls = {device: (lambda a=torch.ones(8, device=device), b=torch.ones(8, device=device): function(a, b))
                 for device in DEVICES}
        times = [[1e6 * time_of(calls[device]) for device in DEVICES] for _ in range(rounds)]
        cpu, hpu = (statistics.median(one[side] for one in times) for side in (0, 1))
        difference = statistics.median(one[1] - one[0] for one in times)
        print(f"| `{name}` | {cpu:.2f} us | {hpu:.2f} us | {difference:.2f} us |")


def make_step(device):
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True, dropout=0.0).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(16, 64, 256).to(device)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return step


def show_training(rounds):
    steps = {device: make_step(device) for device in DEVICES}
    times = []
    for number in range(rounds + 3):
        row = []
        for device in DEVICES:
            start = time.perf_counter()
            steps[device]()
            row.append(1e3 * (time.perf_counter() - start))
        if number >= 3:
            times.append(row)
    cpu, hpu = (statistics.median(one[side] for one in times) for side in (0, 1))
    ratio = statistics.median(one[1] / one[0] for one in times)
    print(f"\nA step of a TransformerEncoderLayer of width 256 with AdamW: cpu {cpu:.1f} ms, hpu {hpu:.1f} ms, {ratio:.2f} "
          "times the time on the CPU.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start, medians of {options.rounds} "
          "interleaved rounds.\n")
    show_operations(options.rounds)
    show_training(options.rounds)


if __name__ == "__main__":
    main()
