# SPDX-License-Identifier: Apache-2.0
"""Trains, validates and tests with Lightning and the Trainer named by the first argument.

train_lightning.py KIND [FOLDER]
"""
import sys

import torch
import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer

from common import GLOBAL_BATCH, STEPS, is_distributed, make_data, make_model, report, require_trained_together, weights


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        self.log("validated", self.loss(batch), sync_dist=True)

    def test_step(self, batch, index):
        self.log("tested", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def loader(self):
        """Returns the data in the order that a single process uses. With several ranks, Lightning
        would add a sampler that shuffles the data."""
        world = dist.get_world_size() if is_distributed() else 1
        sampler = torch.utils.data.DistributedSampler(make_data(), shuffle=False) if is_distributed() else None
        return torch.utils.data.DataLoader(make_data(), batch_size=GLOBAL_BATCH // world, sampler=sampler)

    train_dataloader = val_dataloader = test_dataloader = loader


class Watcher(Callback):
    """Collects the loss of each step and checks the training on every rank, including ranks that
    Lightning starts."""

    def __init__(self):
        self.losses = []

    def on_fit_start(self, trainer, model):
        self.before = weights(model)

    def on_train_batch_end(self, trainer, model, outputs, batch, index):
        loss = outputs["loss"].detach().float().clone()
        if is_distributed():
            dist.all_reduce(loss)
            loss /= dist.get_world_size()
        self.losses.append(loss.item())

    def on_train_end(self, trainer, model):
        assert trainer.global_step == STEPS, trainer.global_step
        require_trained_together(model, self.before, STEPS, on_hpu=trainer.strategy.root_device.type == "hpu")
        validated = trainer.callback_metrics["validated"].item()
        report(model, self.losses, device=trainer.strategy.root_device.type, strategy=type(trainer.strategy).__name__,
               accelerator=type(trainer.accelerator).__name__, precision=type(trainer.precision_plugin).__name__,
               validated=validated, devices=trainer.num_devices, nodes=trainer.num_nodes)


def trainer_of(kind: str, **more) -> Trainer:
    """Returns a Trainer with the arguments that Gaudi users pass."""
    if kind in ("cpu", "cpu-bf16"):
        return Trainer(accelerator="cpu", devices=1, precision="bf16-mixed" if kind == "cpu-bf16" else "32-true", **more)
    if kind == "bare":
        return Trainer(**more)
    if kind == "one":
        return Trainer(accelerator="hpu", devices=1, **more)
    if kind == "two":
        return Trainer(devices=2, accelerator="hpu", **more)
    if kind == "eight":
        return Trainer(devices=8, accelerator="hpu", **more)
    if kind == "auto":
        return Trainer(accelerator="hpu", devices="auto", **more)
    from lightning_habana.pytorch.accelerator import HPUAccelerator
    from lightning_habana.pytorch.plugins import HPUPrecisionPlugin
    from lightning_habana.pytorch.strategies import HPUParallelStrategy

    if kind == "accelerator":
        return Trainer(accelerator=HPUAccelerator(), devices=2, **more)
    if kind == "bf16":
        return Trainer(accelerator=HPUAccelerator(), devices=2, plugins=[HPUPrecisionPlugin(precision="bf16-mixed")], **more)
    if kind == "parallel":
        strategy = HPUParallelStrategy(parallel_devices=[torch.device("hpu")] * 2)
        return Trainer(accelerator=HPUAccelerator(), devices=2, strategy=strategy, **more)
    assert kind in ("node-of-one", "node-of-two"), kind
    devices = 1 if kind == "node-of-one" else 2
    strategy = HPUParallelStrategy(parallel_devices=[torch.device("hpu")] * devices)
    return Trainer(accelerator=HPUAccelerator(), devices=devices, num_nodes=2, strategy=strategy, **more)


def main() -> None:
    kind = sys.argv[1]
    model = Model()
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    trainer = trainer_of(kind, max_epochs=1, logger=False, enable_checkpointing=folder is not None,
                         default_root_dir=folder, enable_progress_bar=False, enable_model_summary=False,
                         use_distributed_sampler=False, callbacks=[Watcher()])
    trainer.fit(model)
    found = trainer.test(model, verbose=False)
    assert found[0]["tested"] > 0, found


if __name__ == "__main__":
    main()
