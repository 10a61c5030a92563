# SPDX-License-Identifier: Apache-2.0
"""Tests Lightning, Accelerate and Transformers on the backend hccl, with tiny models and CPU tensors
on 2 ranks."""
import importlib.util
import sys
from pathlib import Path

import pytest

from launcher import FOLDER, Program, environment, free_port, run, run_program, torchrun

LIMIT = 300  # seconds per program, spent mostly on imports


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")


def without_caches(folder: Path) -> dict[str, str]:
    """Returns variables that keep programs off the network and out of the home folder."""
    return {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "huggingface"), "TOKENIZERS_PARALLELISM": "false"}


# Shared by the programs below: all ranks must have the same weights, which must differ from the
# initial weights.
EQUAL = """
def require_trained_together(model, before):
    own = torch.cat([one.detach().flatten() for one in model.parameters()])
    everybody = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, own)
    assert all(torch.equal(one, own) for one in everybody), everybody
    assert not torch.equal(own, before)
    print(f"rank {dist.get_rank()}: trained together", flush=True)

def weights(model):
    return torch.cat([one.detach().flatten().clone() for one in model.parameters()])
"""

LIGHTNING = """
import os, torch, torch.distributed as dist, hccl_torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset
""" + EQUAL + """
class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True)
        return loss
    def validation_step(self, batch, index):
        assert torch.is_inference_mode_enabled()
        self.log("rank", float(dist.get_rank()), sync_dist=True)
        self.log("largest", torch.tensor(float(dist.get_rank())), sync_dist=True, reduce_fx="max")
    def test_step(self, batch, index):
        self.log("integer", torch.tensor(dist.get_rank() * 2), sync_dist=True)
        self.log("loss", self.loss(batch), sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 8), torch.randn(32, 1))
loader = DataLoader(data, batch_size=4)
model = Model()
before = weights(model)
trainer = Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy(process_group_backend="hccl"), max_steps=4, logger=False,
                  enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
assert dist.get_backend() == "hccl" and dist.get_world_size() == 2
assert isinstance(trainer.strategy.model, torch.nn.Module) and trainer.global_step == 4
require_trained_together(model, before)
found = trainer.validate(model, loader, verbose=False)[0]
assert found["rank"] == 0.5 and found["largest"] == 1.0, found
found = trainer.test(model, loader, verbose=False)[0]
assert found["integer"] == 1.0, found
with torch.no_grad():
    parts = [DataLoader(torch.utils.data.Subset(data, range(rank, 32, 2)), batch_size=4) for rank in range(2)]
    losses = [model.loss(batch) for part in parts for batch in part]
assert abs(found["loss"] - torch.stack(losses).mean().item()) < 1e-6, (found, losses)
assert hccl_torch.stats()["all_reduce"]["calls"] >= 4
"""


def test_lightning(tmp_path: Path) -> None:
    """Lightning must take the backend from DDPStrategy and start the second rank. fit, validate and
    test must work; validate and test use inference mode. sync_dist=True must average values over
    the ranks, integers included. Lightning does not destroy the group, so the group still exists
    when the processes exit."""
    needs("lightning")
    program = tmp_path / "program.py"
    program.write_text(LIGHTNING)
    output = run([sys.executable, str(program)], seconds=LIMIT)
    assert "rank 0: trained together" in output and "rank 1: trained together" in output, output


def test_lightning_on_two_nodes(tmp_path: Path) -> None:
    """num_nodes=2 with MASTER_ADDR, MASTER_PORT, WORLD_SIZE and NODE_RANK must work with one rank
    on each of two emulated nodes."""
    needs("lightning")
    program = tmp_path / "program.py"
    program.write_text(LIGHTNING.replace("devices=2,", "devices=1, num_nodes=2,"))
    port = free_port()
    nodes = [Program([sys.executable, str(program)],
                     environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE="2", NODE_RANK=str(node),
                                 HCCL_NODE_ID=f"node-{node}", HCCL_EXPLAIN="1")) for node in range(2)]
    for rank, node in enumerate(nodes):
        code, output = node.finish(LIMIT)
        assert code == 0 and f"rank {rank}: trained together" in output and "tcp" in output, output


ACCELERATE = """
import sys, torch, torch.distributed as dist
{first}
from accelerate import Accelerator, InitProcessGroupKwargs, PartialState
from accelerate.utils import set_seed
""" + EQUAL + """
accelerator = {accelerator}
assert accelerator.num_processes == 2 and dist.get_backend() == "hccl"
assert accelerator.distributed_type.name == "MULTI_CPU" and accelerator.device.type == "cpu"
assert accelerator.state.backend == "{label}", accelerator.state.backend
set_seed(accelerator.process_index)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 2)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
assert isinstance(model, torch.nn.parallel.DistributedDataParallel)
before = weights(model)
for data, target in loader:
    optimizer.zero_grad()
    accelerator.backward(torch.nn.functional.mse_loss(model(data), target))
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
require_trained_together(model, before)
assert accelerator.gather(torch.tensor([accelerator.process_index])).tolist() == [0, 1]
assert accelerator.reduce(torch.tensor([1.5]), "mean").item() == 1.5
assert accelerator.gather_for_metrics([accelerator.process_index], use_gather_object=True) == [0, 1]
accelerator.wait_for_everyone()
accelerator.end_training()
"""

FIRST = 'dist.init_process_group("hccl")'
KEYWORD = 'kwargs_handlers=[InitProcessGroupKwargs(backend="hccl")]'


def accelerate_program(accelerator: str, first: str = "", label: str = "hccl") -> str:
    return ACCELERATE.replace("{accelerator}", accelerator).replace("{first}", first).replace("{label}", label)


def require_trained_together(output: str) -> None:
    for rank in range(2):
        assert f"rank {rank}: trained together" in output, output


def test_accelerate_uses_an_existing_group(tmp_path: Path) -> None:
    """Without the patch, Accelerate on CPUs must wrap the model, shard the data and gather results
    with the group that the program has created. All ranks must end with the same weights.
    Accelerate labels the backend "gloo", which is wrong but harmless."""
    needs("accelerate")
    require_trained_together(run_program(2, accelerate_program("Accelerator(cpu=True)", FIRST, "gloo"), tmp_path, seconds=LIMIT))


@pytest.mark.parametrize("options", ["cpu=True, ", ""])
def test_patched_accelerate_creates_the_group(options: str, tmp_path: Path) -> None:
    """With HCCL_TORCH_PATCH_ACCELERATE=1, Accelerate must use the backend that the program names,
    and hccl_torch must announce the patch. Without the patch, the program would raise ValueError if
    it passed cpu=True, and otherwise train its ranks independently."""
    needs("accelerate")
    output = run_program(2, accelerate_program(f"Accelerator({options}{KEYWORD})"), tmp_path, seconds=LIMIT,
                         HCCL_TORCH_PATCH_ACCELERATE="1")
    require_trained_together(output)
    assert "hccl_torch: Accelerate accepts the backend hccl on CPUs" in output, output


PARTIAL_STATE = """
import torch.distributed as dist
from accelerate import PartialState
state = PartialState({options}backend="hccl")
assert state.distributed_type.name == "MULTI_CPU" and state.backend == "hccl" == dist.get_backend(), state
assert state.num_processes == 2 and state.device.type == "cpu", state
state.destroy_process_group()
"""


@pytest.mark.parametrize("options", ["cpu=True, ", ""])
def test_patched_partial_state(options: str, tmp_path: Path) -> None:
    """The patch must also work for PartialState, which Transformers uses."""
    needs("accelerate")
    run_program(2, PARTIAL_STATE.replace("{options}", options), tmp_path, seconds=LIMIT, HCCL_TORCH_PATCH_ACCELERATE="1")


PATCHED_LATER = """
import torch
from accelerate import PartialState
original = PartialState._prepare_backend
from hccl_torch import _accelerate
_accelerate.patch_when_imported()
assert PartialState._prepare_backend is not original
state = PartialState()
assert state.distributed_type.name == "NO" and state.backend is None, state
"""

FOREIGN_VERSION = """
import types, warnings
from hccl_torch import _accelerate
class PartialState:
    def _prepare_backend(self): pass
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for module in (types.SimpleNamespace(), types.SimpleNamespace(PartialState=PartialState, DistributedType=object)):
        _accelerate.patch(module)
assert len(caught) == 2 and "has no effect on this version of Accelerate" in str(caught[0].message)
"""


@pytest.mark.parametrize("program", [PATCHED_LATER, FOREIGN_VERSION])
def test_patch_affects_nothing_else(program: str) -> None:
    """The patch must apply to an already imported module and must not affect a single process. An
    unknown version of Accelerate must cause a warning and stay unpatched."""
    needs("accelerate")
    run([sys.executable, "-c", program], seconds=LIMIT)


APART = """
import torch, warnings
from accelerate import PartialState
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    state = PartialState(backend="hccl")
assert state.distributed_type.name == "NO" and torch.distributed.get_world_size() == 2
print(*[one.message for one in caught])
"""

REFUSED = """
from accelerate import Accelerator, InitProcessGroupKwargs
try:
    Accelerator(cpu=True, """ + KEYWORD + """)
except ValueError as error:
    print("refused:", error)
"""


def test_accelerate_without_the_patch(tmp_path: Path) -> None:
    """Without the patch, a program that names the backend but not cpu=True trains its ranks
    independently, and a warning must name the remedy. A program that names the backend and cpu=True
    must get Accelerate's error."""
    needs("accelerate")
    output = run_program(2, APART, tmp_path, seconds=LIMIT)
    assert output.count("so each rank will train alone; set HCCL_TORCH_PATCH_ACCELERATE=1") == 2, output
    output = run_program(2, REFUSED, tmp_path, seconds=LIMIT)
    assert output.count("refused: Your assigned backend hccl is not available, please use gloo") == 2, output


TRANSFORMERS = """
import torch, torch.distributed as dist
{first}
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
""" + EQUAL + """
config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
torch.manual_seed(0)
model = BertForSequenceClassification(config)
data = [dict(input_ids=torch.randint(0, 64, (8,)), labels=torch.tensor(i % 2)) for i in range(32)]
arguments = TrainingArguments("{folder}", use_cpu=True, max_steps=4, per_device_train_batch_size=4, report_to=[],
                              save_strategy="no"{options})
assert arguments.world_size == 2 and arguments.parallel_mode.value == "distributed"
assert dist.get_backend() == "hccl"
before = weights(model)
trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
trainer.train()
assert isinstance(trainer.model_wrapped, torch.nn.parallel.DistributedDataParallel)
require_trained_together(model, before)
assert trainer.evaluate()["eval_loss"] > 0
"""


@pytest.mark.parametrize("patched", [False, True])
def test_transformers_trainer(patched: bool, tmp_path: Path) -> None:
    """Transformers' Trainer must train and evaluate a tiny BERT on CPUs: either in a group that the
    program has created, or, if Accelerate is patched, with only ddp_backend="hccl". All ranks must
    end with the same weights."""
    needs("accelerate", "transformers")
    text = TRANSFORMERS.replace("{folder}", str(tmp_path / "out")).replace("{first}", "" if patched else FIRST)
    text = text.replace("{options}", ', ddp_backend="hccl"' if patched else "")
    variables = without_caches(tmp_path) | ({"HCCL_TORCH_PATCH_ACCELERATE": "1"} if patched else {})
    require_trained_together(run_program(2, text, tmp_path, seconds=LIMIT, **variables))


SCRIPTS = {"test_ops": [], "test_sync": [], "test_script": [], "test_ddp_comm_hook": [],
           "test_distributed_data_loop": ["torchdata"]}


@pytest.mark.parametrize("script", SCRIPTS)
def test_accelerate_scripts(script: str, tmp_path: Path) -> None:
    """Accelerate's own scripts for several processes must pass unchanged on 2 ranks over hccl. They
    test gather, reduce and broadcast of nested tensors and objects; gradient accumulation; training
    compared with one process; DDP's compression hooks; data loaders and their state; and Join."""
    needs("accelerate", *SCRIPTS[script])
    path = Path(importlib.util.find_spec("accelerate").origin).parent / "test_utils/scripts" / f"{script}.py"
    if not path.exists():
        pytest.skip(f"needs {path.name} of Accelerate")
    output = run(torchrun(2, str(FOLDER / "accelerate_script.py"), str(path)), seconds=LIMIT, ACCELERATE_USE_CPU="1",
                 **without_caches(tmp_path))
    assert output.count("the script has ended after") == 2, output
