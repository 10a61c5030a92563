# SPDX-License-Identifier: Apache-2.0
"""Trains with Accelerate, without naming a device or a backend.

train_accelerate.py [no|bf16]
"""
import sys

import torch
from accelerate import Accelerator

from common import GLOBAL_BATCH, STEPS, make_data, make_model, report, require_trained_together, weights


def main() -> None:
    accelerator = Accelerator(mixed_precision=sys.argv[1] if len(sys.argv) > 1 else "no")
    model = make_model()
    before = weights(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(make_data(), batch_size=GLOBAL_BATCH // accelerator.num_processes)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(accelerator.reduce(loss.detach(), "mean").item())
    assert len(losses) == STEPS
    if accelerator.num_processes > 1:
        assert isinstance(model, torch.nn.parallel.DistributedDataParallel), type(model)
    gathered = accelerator.gather(torch.tensor([accelerator.process_index], device=accelerator.device)).tolist()
    assert gathered == list(range(accelerator.num_processes)), gathered
    plain = accelerator.unwrap_model(model)
    require_trained_together(plain, before, STEPS, on_hpu=accelerator.device.type == "hpu")
    report(plain, losses, kind=accelerator.distributed_type.name, device=str(accelerator.device),
           backend=accelerator.state.backend)
    accelerator.end_training()


if __name__ == "__main__":
    main()
