# SPDX-License-Identifier: Apache-2.0
"""Tests the device "hpu" as programs use it: tensors, memory, random numbers, streams, and clear
refusals."""
import copy
import io
import multiprocessing
import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(not hasattr(torch, "hpu"), reason="needs the installed emulation and HCCL_EMU_HPU=1")


def run_apart(program: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True,
                          timeout=120)


def test_reports_that_it_is_emulated():
    assert torch.hpu.is_available() and torch.hpu.device_count() == 8
    assert "emulated" in torch.hpu.get_device_name()
    assert "emulated" in torch.hpu.memory_summary()
    assert torch.accelerator.current_accelerator() == torch.device("hpu")


def test_views_share_memory():
    base = torch.arange(12.0, device="hpu").reshape(3, 4)
    base.t()[1].fill_(7)
    assert base[:, 1].tolist() == [7, 7, 7]
    assert base.t().untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert base.detach().split(2, dim=1)[1]._base is not None or base[:, 2:]._is_view()


def test_out_and_resizing_grow_storages():
    out = torch.empty(0, device="hpu")
    view_of_same_storage = out.view(0)
    torch.add(torch.ones(1000, device="hpu"), 1, out=out)
    assert out.tolist() == [2.0] * 1000
    assert view_of_same_storage.untyped_storage().nbytes() == 4000
    out.untyped_storage().resize_(0)
    out.untyped_storage().resize_(4000)
    out.fill_(3)
    assert out.sum().item() == 3000
    grown = torch.arange(3.0, device="hpu").resize_(5)
    assert grown[:3].tolist() == [0, 1, 2]


def test_saves_and_loads_between_devices():
    kept = io.BytesIO()
    torch.save({"weights": torch.arange(5.0, device="hpu")}, kept)
    for target in ("hpu", "cpu"):
        kept.seek(0)
        loaded = torch.load(kept, map_location=None if target == "hpu" else "cpu")["weights"]
        assert loaded.device.type == target and loaded.tolist() == [0, 1, 2, 3, 4]


def test_draws_the_cpus_numbers_from_its_own_state():
    torch.manual_seed(3)
    on_device = torch.randn(5, device="hpu"), torch.nn.functional.dropout(torch.ones(9, device="hpu"))
    torch.manual_seed(3)
    assert torch.equal(on_device[0].cpu(), torch.randn(5))
    state = torch.hpu.get_rng_state()
    drawn = torch.rand(4, device="hpu"), torch.randperm(6, device="hpu"), torch.native_dropout(
        torch.ones(50, device="hpu"), 0.5, True)[0]
    before = torch.get_rng_state()
    torch.hpu.set_rng_state(state)
    again = torch.rand(4, device="hpu"), torch.randperm(6, device="hpu"), torch.native_dropout(
        torch.ones(50, device="hpu"), 0.5, True)[0]
    assert all(torch.equal(one, other) for one, other in zip(drawn, again))
    assert torch.equal(before, torch.get_rng_state()), "the CPU's state has moved"
    generator = torch.Generator("hpu").manual_seed(9)
    assert torch.equal(torch.rand(3, device="hpu", generator=generator).cpu(),
                       torch.rand(3, generator=torch.Generator().manual_seed(9)))


def test_loads_data_with_workers_into_pinned_memory():
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)
    kept = torch.ones(1000, device="hpu")
    total = 0.0
    for batch, in loader:
        assert batch.is_pinned()
        total += batch.to("hpu", non_blocking=True).sum().item()
    assert total == sum(range(32)) and kept.sum().item() == 1000


def test_streams_and_events():
    stream = torch.hpu.Stream()
    with torch.hpu.stream(stream):
        assert torch.hpu.current_stream() == stream != torch.hpu.default_stream()
        begin, end = torch.hpu.Event(enable_timing=True), torch.hpu.Event(enable_timing=True)
        begin.record()
        torch.ones(10, device="hpu").sum()
        end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0
    assert torch.hpu.current_stream() == torch.hpu.default_stream()
    torch.hpu.synchronize()


def test_autocasts():
    left = torch.randn(4, 4, device="hpu")
    with torch.autocast("hpu", dtype=torch.bfloat16):
        assert (left @ left).dtype == torch.bfloat16 and left.exp().dtype == torch.float32
    with torch.hpu.amp.autocast(enabled=False):
        assert (left @ left).dtype == torch.float32


def test_counts_memory_and_operations():
    import hccl_torch_hpu

    torch.hpu.reset_peak_memory_stats()
    before = torch.hpu.memory_allocated()
    tensor = torch.empty(1 << 20, device="hpu")
    assert torch.hpu.memory_allocated() - before == 4 << 20
    del tensor
    assert torch.hpu.memory_allocated() == before and torch.hpu.max_memory_allocated() >= before + (4 << 20)
    stats = torch.hpu.memory_stats()
    assert stats["Limit"] == torch.hpu.mem_get_info()[1] >= 90 << 30 and stats["InUse"] == before
    hccl_torch_hpu.reset_operation_counts()
    torch.ones(3, device="hpu") + 1
    assert hccl_torch_hpu.operation_counts()["aten::add.Tensor"] == 1


def test_refuses_to_mix_devices():
    with pytest.raises(RuntimeError, match="two devices, hpu:0 and cpu"):
        torch.ones(3, device="hpu") + torch.ones(3)
    with pytest.raises(RuntimeError, match="two devices, hpu:0 and cpu"):
        torch.dot(torch.ones(3, device="hpu"), torch.ones(3))
    assert (torch.ones(3, device="hpu") * torch.tensor(2.0)).tolist() == [2, 2, 2]
    assert torch.arange(4, device="hpu")[torch.tensor([1, 3])].tolist() == [1, 3]


def test_refuses_to_write_to_cpu_tensors_and_to_quantize():
    for call in (lambda: torch.add(torch.ones(3, device="hpu"), 1, out=torch.empty(())),
                 lambda: torch.tensor(1.0).add_(torch.tensor(2.0, device="hpu")),
                 lambda: torch.rand(2, device="hpu", generator=torch.Generator())):
        with pytest.raises(RuntimeError, match="cpu"):
            call()
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        torch.quantize_per_tensor(torch.ones(3, device="hpu"), 0.1, 0, torch.quint8)


def test_copies_generators():
    generator = torch.Generator("hpu").manual_seed(4)
    copied = copy.deepcopy(generator)
    assert torch.equal(torch.rand(3, device="hpu", generator=generator), torch.rand(3, device="hpu", generator=copied))


def test_refuses_missing_devices():
    for make in (lambda: torch.empty(1, device="hpu:8"), lambda: torch.arange(3, device="hpu:9"),
                 lambda: torch.ones(1).to("hpu:8")):
        with pytest.raises(RuntimeError, match=r"hpu:[89] does not exist: this machine has 8 visible emulated devices"):
            make()
    assert torch.ones(2).to("hpu:3").device == torch.device("hpu:0")  # this process's device
    with pytest.raises(RuntimeError, match="hpu:8 does not exist: this machine has 8 visible emulated devices"):
        torch.hpu.set_device(8)
    torch.hpu.set_device(3)
    assert torch.hpu.current_device() == 0


def test_refuses_sparse_tensors_and_unknown_operations():
    with pytest.raises(NotImplementedError, match="no Sparse tensors"):
        torch.ones(3, device="hpu").to_sparse()
    with torch.library._scoped_library("hccl_hpu_test", "FRAGMENT") as library:
        library.define("nothing(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="hccl_hpu_test::nothing has no kernel for the emulated device"):
            torch.ops.hccl_hpu_test.nothing(torch.ones(1, device="hpu"))


def test_raises_out_of_memory():
    ended = run_apart("""
import torch
kept = torch.zeros(50 << 20, dtype=torch.uint8, device="hpu")
try:
    torch.empty(60 << 20, dtype=torch.uint8, device="hpu")
except torch.OutOfMemoryError as error:
    print(error)
torch.empty(20 << 20, dtype=torch.uint8, device="hpu")
print(torch.hpu.memory_stats()["num_ooms"])
""", HCCL_DEVICE_MEMORY="100M")
    assert ended.returncode == 0, ended.stderr
    text, count = ended.stdout.splitlines()
    assert "hpu:0 (emulated) is out of memory: tried to allocate 62914560 bytes" in text and "HCCL_DEVICE_MEMORY" in text
    assert count == "1"


def test_ends_directly_after_a_backward_pass():
    """The program ends while autograd's thread is still releasing thousands of gradients."""
    for _ in range(4):
        ended = run_apart("""
import torch
inputs = [torch.ones(1, device="hpu", requires_grad=True) for _ in range(2000)]
gradients = torch.autograd.grad(sum(inputs), inputs)
""")
        assert ended.returncode == 0, ended.stderr


def test_ends_although_a_backward_pass_never_does():
    ended = run_apart("""
import threading
import torch
y = torch.ones(1, device="hpu", requires_grad=True).clone()
begun = threading.Event()
y.register_hook(lambda gradient: (begun.set(), threading.Event().wait()))
threading.Thread(target=y.backward, daemon=True).start()
begun.wait()
""", TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT="0")
    assert ended.returncode == 0, ended.stderr
    assert "a backward pass is still running at exit" in ended.stderr


def _touch(queue) -> None:
    try:
        torch.ones(3, device="hpu")
        queue.put("allocated")
    except RuntimeError as error:
        queue.put(str(error))


def test_forked_processes_get_an_error_that_names_spawn():
    torch.ones(1, device="hpu")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_touch, args=(queue,))
    process.start()
    text = queue.get(timeout=60)
    process.join(60)
    assert "forked process" in text and "spawn" in text, text


def test_lazy_steps_with_different_shapes_make_different_graphs():
    ended = run_apart("""
import torch
import habana_frameworks.torch.core as htcore
from habana_frameworks.torch.hpu.metrics import metric_global

def step(extent):
    (torch.ones(extent, device="hpu") * 2).sum().item()
    htcore.mark_step()

for extent in (3, 3, 4, 3, 4, 5):
    step(extent)
htcore.mark_step()  # an empty step
print(dict(metric_global("graph_compilation").stats())["TotalNumber"], dict(metric_global("recipe_cache").stats())["TotalHit"])
""", PT_HPU_LAZY_MODE="1")
    assert ended.stdout.split() == ["3", "3"], ended.stderr + ended.stdout
