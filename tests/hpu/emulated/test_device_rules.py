# SPDX-License-Identifier: Apache-2.0
"""Tests PyTorch's device rules that matter only to programs that break them or request
determinism."""
import threading
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing

pytestmark = pytest.mark.skipif(not hasattr(torch, "hpu"), reason="needs the installed emulation and HCCL_EMU_HPU=1")


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.uint8, torch.bool])
def test_new_memory_is_filled_if_algorithms_are_deterministic(deterministic, dtype):
    """In deterministic mode, new memory must contain the same values as on the CPU, such as NaN."""
    def made(device):
        base = torch.zeros(2, 3, device=device).to(dtype)
        yield torch.empty(3, 4, dtype=dtype, device=device)
        yield torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=device)
        yield torch.empty_permuted((2, 3, 4), (2, 0, 1), dtype=dtype, device=device)
        yield torch.empty_like(base)
        yield base.new_empty(5)
        yield torch.zeros(2, device=device).to(dtype).resize_(7)
        yield torch.Tensor.resize_(base.clone(), 4, 2)

    for on_device, on_host in zip(made("hpu"), made("cpu")):
        assert on_device.device.type == "hpu" and on_device.stride() == on_host.stride()
        torch.testing.assert_close(on_device.cpu(), on_host, rtol=0, atol=0, equal_nan=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        assert torch.empty(1000, device="hpu").fill_(1).sum().item() == 1000
        kept = torch.full((1 << 20,), 3.0, device="hpu")
        del kept
        assert not torch.empty(1 << 20, device="hpu").isnan().any()
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


def test_list_operations_refuse_cpu_scalars():
    number, other = torch.tensor(1.0), torch.tensor(2.0, device="hpu")
    for call in (torch.stack, torch.cat, torch.hstack, torch.vstack):
        with pytest.raises(RuntimeError, match="two devices, hpu:0 and cpu"):
            call([other, number])
    # In a foreach operation, each tensor of the list is a separate operand.
    assert [one.item() for one in torch._foreach_mul([other, other], [number, number + 1])] == [2.0, 4.0]
    assert torch.arange(6, device="hpu").view(2, 3)[torch.tensor(1), torch.tensor([0, 2])].tolist() == [3, 5]


def test_dropout_does_not_advance_the_cpu_generator():
    """Dropout on the device must not affect the CPU's generator, even while another thread draws
    from it."""
    expected = torch.rand(20000, generator=torch.Generator().manual_seed(11))
    ones, ended = torch.ones(4096, device="hpu"), threading.Event()

    def drop() -> None:
        while not ended.is_set():
            torch.native_dropout(ones, 0.5, True)

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        torch.random.default_generator.manual_seed(11)
        drawn = torch.cat([torch.rand(8) for _ in range(2500)])
    finally:
        ended.set()
        thread.join()
    assert torch.equal(drawn, expected)


@pytest.mark.parametrize("train, probability", [(True, 0.25), (True, 1.0), (False, 0.5), (None, 0.5)])
def test_dropout_draws_like_the_cpu(train, probability):
    results = []
    for device in ("hpu", "cpu"):
        torch.manual_seed(5)
        values = torch.linspace(-1, 1, 60).to(device).view(6, 10).t().requires_grad_()
        output, mask = torch.native_dropout(values, probability, train)
        output.sum().backward()
        results.append([one.detach().cpu() for one in (output, mask, values.grad, torch.rand(3, device=device))])
    assert all(torch.equal(one, other) for one, other in zip(*results))
    assert torch.native_dropout(torch.ones(0, device="hpu"), 0.5, True)[0].numel() == 0


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_tensors_cannot_be_shared_with_processes(strategy):
    """Both ways of sharing memory must refuse device tensors with the same error, and must still
    work for CPU tensors."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(strategy)
    try:
        for one in (torch.ones(3, device="hpu"), torch.nn.Parameter(torch.ones(3, device="hpu")), torch.ones(0, device="hpu"),
                    torch.ones(3, device="hpu").untyped_storage()):
            with pytest.raises(RuntimeError, match=r"hpu:0 cannot be sent to another process.*\.cpu\(\)"):
                ForkingPickler.dumps({"state": one})
        queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
        queue.put(torch.arange(3))
        assert queue.get().tolist() == [0, 1, 2]
    finally:
        torch.multiprocessing.set_sharing_strategy(before)
