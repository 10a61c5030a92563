# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny BERT with Transformers' Trainer on the device that it detects.

train_transformers.py FOLDER [--resume CHECKPOINT] [--accumulate N] [NAME=VALUE...]     arguments of TrainingArguments
"""
import argparse
import ast
import os

import torch
import torch.distributed as dist
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from common import GLOBAL_BATCH, STEPS, is_distributed, report, require_trained_together, weights


def make_bert() -> BertForSequenceClassification:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    # Tells Trainer that the model's loss is a mean. Otherwise, Trainer would treat it as a sum over
    # all devices and multiply it by the number of devices.
    model.accepts_loss_kwargs = False
    return model


def make_sentences(count: int) -> list[dict]:
    generator = torch.Generator().manual_seed(1)
    return [dict(input_ids=torch.randint(0, 64, (8,), generator=generator), labels=torch.tensor(i % 2)) for i in range(count)]


def watched(trainer: type) -> type:
    """Returns a subclass of a trainer that records the loss of each step, because Transformers 4
    logs only four digits."""
    class Watched(trainer):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.kept = []

        def training_step(self, *arguments, **named):
            loss = super().training_step(*arguments, **named)
            self.kept.append(loss.detach().clone())
            return loss

        def losses(self) -> list[float]:
            """Returns the loss of each step, averaged over all ranks."""
            found = torch.stack([loss.float() for loss in self.kept])
            if is_distributed():
                dist.all_reduce(found, op=dist.ReduceOp.AVG)
            return found.tolist()

    return Watched


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--resume")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    more = {name: ast.literal_eval(value) for name, value in (one.split("=", 1) for one in options.more)}
    # With a backend, Accelerate would expect several processes.
    backend = "hccl" if "WORLD_SIZE" in os.environ else None
    arguments = TrainingArguments(options.folder, ddp_backend=backend, max_steps=STEPS, logging_steps=1, report_to=[],
                                  learning_rate=1e-2, adam_epsilon=1e-3,
                                  gradient_accumulation_steps=options.accumulate, disable_tqdm=True, **more)
    arguments.per_device_train_batch_size = GLOBAL_BATCH // arguments.world_size // options.accumulate
    model = make_bert()
    before = weights(model)
    sentences = make_sentences(GLOBAL_BATCH * STEPS)
    trainer = watched(Trainer)(model=model, args=arguments, train_dataset=sentences, eval_dataset=sentences[:GLOBAL_BATCH])
    trainer.train(resume_from_checkpoint=options.resume)
    if arguments.world_size > 1:
        wrapped = trainer.model_wrapped
        wrapped = getattr(wrapped, "_orig_mod", wrapped)
        assert isinstance(wrapped, torch.nn.parallel.DistributedDataParallel), type(wrapped)
    steps = STEPS - (2 if options.resume else 0)
    require_trained_together(model, before, steps, on_hpu=arguments.device.type == "hpu")
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    losses = logged if transformers.__version__.startswith("5.") else trainer.losses()
    evaluated = trainer.evaluate()["eval_loss"]
    report(model, losses, device=str(arguments.device), mode=arguments.parallel_mode.value, evaluated=evaluated,
           n_gpu=arguments.n_gpu, compiler=arguments.torch_compile_backend)


if __name__ == "__main__":
    main()
