# SPDX-License-Identifier: Apache-2.0
"""Trains a small BERT on all visible devices with Trainer from Transformers. The script names no device.

hccl-hpu run -n 2 train_bert.py [--steps N]

Rank 0 prints the device, the losses of the first and last steps, and the median step time. The script generates the
data: each sentence repeats one word, and the model learns whether that word's number is odd.
"""
import argparse
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from transformers import (BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainerCallback,
                          TrainingArguments)

WORDS = 64
LENGTH = 16
SENTENCES = 1024


def make_model() -> BertForSequenceClassification:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=WORDS, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256))
    # The model's loss is a mean. Without this setting, Trainer assumes that the loss is a sum over all devices, and
    # multiplies it by the number of devices.
    model.accepts_loss_kwargs = False
    return model


def make_sentences() -> list[dict[str, torch.Tensor]]:
    words = torch.randint(0, WORDS, (SENTENCES,), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": word.repeat(LENGTH), "labels": word % 2} for word in words]


class StepTimes(TrainerCallback):
    """Collects the duration of each step in seconds."""

    def __init__(self) -> None:
        self.seconds = []

    def on_step_begin(self, arguments, state, control, **more) -> None:
        self.start = time.perf_counter()

    def on_step_end(self, arguments, state, control, **more) -> None:
        self.seconds.append(time.perf_counter() - self.start)


def require_equal_weights(model: torch.nn.Module) -> None:
    """Raises AssertionError unless the weights are bit-identical on all ranks. Blocks until all
    ranks have called this function."""
    own = torch.cat([one.detach().flatten() for one in model.parameters()])
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, own)
    assert all(torch.equal(one, own) for one in everybody), "the ranks have different weights"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    times = StepTimes()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, ddp_backend="hccl", max_steps=options.steps, per_device_train_batch_size=16,
                                      learning_rate=1e-3, logging_steps=1, report_to=[], save_strategy="no",
                                      ddp_find_unused_parameters=False, disable_tqdm=True, log_level="error")
        trainer = Trainer(model=make_model(), args=arguments, train_dataset=make_sentences(), callbacks=[times])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    if arguments.world_size > 1:
        require_equal_weights(trainer.model)
    if arguments.process_index == 0:
        losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
        print(f"{torch.get_device_module(arguments.device).get_device_name()}: {arguments.world_size} devices, "
              f"loss {losses[0]:.4f} at first and {losses[-1]:.4f} after {len(losses)} steps, "
              f"{1000 * statistics.median(times.seconds):.1f} ms a step, equal weights on all")


if __name__ == "__main__":
    main()
