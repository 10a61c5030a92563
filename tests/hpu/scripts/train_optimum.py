# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny BERT with Optimum's GaudiTrainer.

train_optimum.py FOLDER [NAME=VALUE...]     arguments of GaudiTrainingArguments
"""
import ast
import sys

from optimum.habana import GaudiConfig, GaudiTrainer, GaudiTrainingArguments

from common import GLOBAL_BATCH, STEPS, report, require_trained_together, weights
from train_transformers import make_bert, make_sentences, watched


def main() -> None:
    folder, *more = sys.argv[1:]
    named = {name: ast.literal_eval(value) for name, value in (one.split("=", 1) for one in more)}
    arguments = GaudiTrainingArguments(
        folder, **({"use_habana": True, "use_lazy_mode": True, "max_steps": STEPS, "logging_steps": 1, "report_to": [],
                    "learning_rate": 1e-2, "adam_epsilon": 1e-3, "disable_tqdm": True, "save_strategy": "no"} | named))
    arguments.per_device_train_batch_size = GLOBAL_BATCH // arguments.world_size
    model = make_bert()
    before = weights(model)
    trainer = watched(GaudiTrainer)(model=model, args=arguments, gaudi_config=GaudiConfig(use_fused_adam=False, use_fused_clip_norm=False),
                      train_dataset=make_sentences(GLOBAL_BATCH * STEPS))
    trainer.train()
    losses = trainer.losses()
    assert arguments.device.type == "hpu", arguments.device
    require_trained_together(model, before, STEPS)
    report(model, losses, device=str(arguments.device), mode=arguments.parallel_mode.value,
           wrapped=type(trainer.model_wrapped).__name__)


if __name__ == "__main__":
    main()
