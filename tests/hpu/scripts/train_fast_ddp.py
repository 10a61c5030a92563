# SPDX-License-Identifier: Apache-2.0
"""Trains while Optimum's unchanged fast_ddp.py reduces the gradients over hccl.

train_fast_ddp.py graphs|plain|stale|cpu      stale: graphs whose replay does nothing, which the test must notice
"""
import sys

import torch
import torch.distributed as dist

from common import GLOBAL_BATCH, STEPS, make_data, make_model, report, require_trained_together, weights


def train(model: torch.nn.Module, device: str, share: slice, reduce) -> list[torch.Tensor]:
    """Trains on this rank's share of each batch and returns its losses."""
    inputs, targets = (tensor.to(device) for tensor in make_data().tensors)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        batch = slice(step * GLOBAL_BATCH, (step + 1) * GLOBAL_BATCH)
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.mse_loss(model(inputs[batch][share]), targets[batch][share])
        loss.backward()
        reduce(model)
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


def main() -> None:
    kind = sys.argv[1]
    model = make_model()
    if kind == "cpu":
        losses = train(model, "cpu", slice(None), lambda model: None)
        report(model, [loss.item() for loss in losses])
        return
    import habana_frameworks.torch as ht
    from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu
    from optimum.habana.distributed import all_reduce_gradients

    world, rank, _ = initialize_distributed_hpu()
    dist.init_process_group("hccl")
    model = model.to("hpu")
    before = weights(model)
    if kind == "stale":
        ht.hpu.HPUGraph.replay = lambda graph, *arguments, **named: None
    size = GLOBAL_BATCH // world
    losses = torch.stack(train(model, "hpu", slice(rank * size, (rank + 1) * size), lambda model: all_reduce_gradients(
        model, fusion_buffer_dtype=torch.float32, use_hpu_graphs=kind != "plain")))
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    if kind != "stale":
        require_trained_together(model, before, STEPS)
    report(model, losses.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
