# SPDX-License-Identifier: Apache-2.0
"""Tests HPU graphs: replays of recorded forward and backward passes must use the current values of
their inputs, and wrapped modules must compute as before."""
import collections
import copy

import pytest
import torch

import habana_frameworks.torch as ht
from conftest import HAS_DEVICE
from habana_frameworks.torch.hpu import HPUGraph, graph


def make_model(device):
    torch.manual_seed(3)
    layers = torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers).to(device)


def loss_of(model, x):
    return model(x).square().sum()


def fresh_gradients(model, x):
    """Returns the loss and gradients of an unrecorded copy of the model."""
    other = copy.deepcopy(model)
    other.zero_grad(set_to_none=True)
    loss = loss_of(other, x)
    loss.backward()
    return loss.detach(), [one.grad for one in other.parameters()]


@pytest.mark.parametrize("context", [True, False])
def test_training_step_replays_with_new_inputs_and_weights(device, context):
    model, x = make_model(device), torch.randn(3, 4).to(device)
    for one in model.parameters():
        one.grad = torch.zeros_like(one)
    recording = HPUGraph()

    def step():
        for one in model.parameters():
            one.grad.zero_()
        loss = loss_of(model, x)
        loss.backward()
        return loss

    if context:
        with graph(recording):
            loss = step()
    else:
        recording.capture_begin()
        loss = step()
        recording.capture_end()
    for _ in range(3):
        x.copy_(torch.randn(3, 4))
        with torch.no_grad():
            for one in model.parameters():
                one.sub_(0.1 * one.grad)
        recording.replay()
        expected, slopes = fresh_gradients(model, x)
        torch.testing.assert_close(loss.detach(), expected)
        for one, slope in zip(model.parameters(), slopes):
            torch.testing.assert_close(one.grad, slope)


def test_backward_pass_alone_replays(device):
    x = torch.randn(3, 4).to(device)
    model = make_model(device)
    forward, backward = HPUGraph(), HPUGraph()
    with graph(forward):
        loss = loss_of(model, x)
    with graph(backward):
        slopes = torch.autograd.grad(loss, list(model.parameters()))
    for asynchronous in (False, True):
        x.copy_(torch.randn(3, 4))
        forward.replay(asynchronous)
        backward.replay(asynchronous)
        for one, other in zip(slopes, fresh_gradients(model, x)[1]):
            torch.testing.assert_close(one, other)


def test_gradients_accumulate_in_a_recording(device):
    weight = torch.ones(2, device=device, requires_grad=True)
    x = torch.tensor([1.0, 2.0]).to(device)
    weight.grad = torch.zeros_like(weight)
    recording = HPUGraph()
    with graph(recording):
        (weight * x).sum().backward()
    x.fill_(10.0)
    recording.replay()
    recording.replay()
    assert weight.grad.tolist() == [21.0, 22.0]


def test_gradients_are_packed_and_unpacked_by_recordings_as_optimum_does(device):
    """Two recordings must work if their shared buffer changes between replays."""
    gradients = [torch.randn(3).to(device), torch.randn(2, 2).to(device)]
    buffer = torch.zeros(7).to(device)
    views = [buffer[:3].reshape(3), buffer[3:].reshape(2, 2)]
    pack, unpack = HPUGraph(), HPUGraph()
    pack.capture_begin()
    for one, view in zip(gradients, views):
        view.copy_(one * 0.5, non_blocking=True)
    pack.capture_end()
    pack.replay()
    buffer.mul_(2.0)
    unpack.capture_begin()
    for one, view in zip(gradients, views):
        one.copy_(view, non_blocking=True)
    unpack.capture_end()
    for _ in range(3):
        fresh = [torch.randn(3), torch.randn(2, 2)]
        for one, value in zip(gradients, fresh):
            one.copy_(value)
        pack.replay()
        torch.testing.assert_close(buffer.cpu(), torch.cat([one.flatten() for one in fresh]) * 0.5)
        buffer.add_(1.0)
        unpack.replay()
        for one, value in zip(gradients, fresh):
            torch.testing.assert_close(one.cpu(), value * 0.5 + 1.0)


def test_views_slices_and_in_place_operations(device):
    x = torch.zeros(4).to(device)
    recording = HPUGraph()
    with graph(recording):
        y = torch.empty(2, 2, device=device)
        y[0] = x[:2] + 1
        y[1] = x.view(2, 2)[1]
        y.mul_(3)
        z = torch.cat((y, y.t())).contiguous()
    x.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    recording.replay()
    expected = torch.tensor([[6.0, 9.0], [9.0, 12.0]])
    assert torch.equal(y.cpu(), expected) and torch.equal(z.cpu(), torch.cat((expected, expected.t())))


def test_replaying_leaves_autograd_usable(device):
    x = torch.randn(3).to(device).requires_grad_()
    recording = HPUGraph()
    with graph(recording):
        y = (x * 2).exp()
    with torch.no_grad():
        x.mul_(0.5)
    recording.replay()
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).exp())


def test_inference_tensors_and_autocast(device):
    with torch.inference_mode():
        x = torch.ones(3, device=device)
        recording = HPUGraph()
        with graph(recording):
            y = (x * 2).view(3, 1) + 1
        x.fill_(5.0)
        recording.replay()
    assert y.flatten().tolist() == [11.0] * 3
    matrix = torch.randn(4, 4).to(device)
    recording = HPUGraph()
    with graph(recording), torch.autocast(device.type, torch.bfloat16):
        product = torch.mm(matrix, matrix)
    matrix.mul_(2.0)
    with torch.autocast(device.type, torch.bfloat16):
        recording.replay()
    assert product.dtype == torch.bfloat16 and torch.equal(product, torch.mm(matrix.bfloat16(), matrix.bfloat16()))


def test_random_operations_draw_new_numbers(device):
    recording = HPUGraph()
    with graph(recording):
        noise = torch.rand(100, device=device)
    first = noise.clone()
    recording.replay()
    assert not torch.equal(first, noise) and 0 <= noise.min() and noise.max() < 1


def test_dry_run_preserves_values(device):
    x = torch.zeros(2, device=device)
    recording = HPUGraph()
    with graph(recording, dry_run=True):
        x.add_(1)
        y = x * 10
    assert x.tolist() == [0.0, 0.0]
    recording.replay()
    assert x.tolist() == [1.0, 1.0] and y.tolist() == [10.0, 10.0]


def test_replay_into_marked_inputs(device):
    x = torch.zeros(2, device=device)
    recording = HPUGraph()
    with graph(recording):
        recording.mark_user_inputs([x])
        y = x + 1
        recording.mark_user_outputs([y])
    recording.replayV3([torch.tensor([4.0, 5.0]).to(device)])
    assert y.tolist() == [5.0, 6.0] and recording.get_user_input_match_indices() == [0]
    recording.replayV2([x], [torch.tensor([7.0, 8.0]).to(device)])
    assert y.tolist() == [8.0, 9.0]


def test_misuse_is_refused(device):
    recording = HPUGraph()
    with pytest.raises(RuntimeError, match="nothing was captured"):
        recording.replay()
    with pytest.raises(RuntimeError, match="no capture is under way"):
        recording.capture_end()
    recording.capture_begin()
    with pytest.raises(RuntimeError, match="a capture is under way"):
        HPUGraph().capture_begin()
    assert ht.hpu.is_current_stream_capturing()
    recording.capture_end()
    assert not ht.hpu.is_current_stream_capturing()
    with graph(recording):
        found = torch.tensor([0, 1]).to(device).nonzero()
    assert found.shape == (1, 1)
    mask = torch.tensor([True, False]).to(device)
    with graph(recording):
        mask.nonzero()
    mask.fill_(True)
    with pytest.raises(RuntimeError, match="aten.nonzero.default returned shape .2, 1., but .1, 1. during the "
                                           "capture"):
        recording.replay()
    recording.reset()
    with pytest.raises(RuntimeError, match="nothing was captured"):
        recording.replay()


def test_exception_ends_the_capture(device):
    with pytest.raises(ValueError, match="inside"), graph(HPUGraph()):
        raise ValueError("inside")
    assert not ht.hpu.is_current_stream_capturing()


@pytest.mark.skipif(not HAS_DEVICE, reason="needs the installed emulation and HCCL_EMU_HPU=1")
def test_refused_capture_restores_the_stream():
    before = ht.hpu.current_stream()
    recording = HPUGraph()
    with graph(recording):
        with pytest.raises(RuntimeError, match="a capture is under way"), graph(HPUGraph(), stream=ht.hpu.Stream()):
            pass
        assert ht.hpu.current_stream() == before
    with pytest.raises(RuntimeError, match="no capture is under way"), graph(recording, stream=ht.hpu.Stream()):
        recording.capture_end()
    assert ht.hpu.current_stream() == before


def test_pool_handles_differ():
    first, second = ht.hpu.graph_pool_handle(), ht.hpu.graph_pool_handle()
    recording = HPUGraph()
    with graph(recording, pool=first):
        pass
    assert first != second and recording.pool() == first


def test_program_with_its_own_cache(device):
    graphs = ht.hpu.graphs
    cache = {}

    def run(inputs):
        key = graphs.input_hash(inputs)
        if key not in cache:
            recording = HPUGraph()
            with graph(recording):
                outputs = inputs[0] * 2 + inputs[1]["b"]
            cache[key] = graphs.CachedParams(inputs, outputs, recording)
            return outputs
        graphs.copy_to(cache[key].graph_inputs, inputs)
        cache[key].graph.replay()
        return cache[key].graph_outputs

    for size in (2, 3, 2, 3):
        a, b = torch.randn(size).to(device), torch.randn(size).to(device)
        torch.testing.assert_close(run([a, {"b": b}, None, 3]), a * 2 + b)
    assert len(cache) == 2
    with pytest.raises(ValueError, match="same structure"):
        graphs.copy_to([torch.ones(1)], [torch.ones(1), torch.ones(1)])


@pytest.mark.parametrize("records", [False, True])
def test_wrapped_module(device, records, monkeypatch):
    monkeypatch.setenv("HCCL_TORCH_HPU_GRAPHS", "1" if records else "0")
    model = make_model(device)
    plain = copy.deepcopy(model)
    wrapped = ht.hpu.wrap_in_hpu_graph(model, asynchronous=True, disable_tensor_cache=True, hash_with_views=False,
                                       max_graphs=2)
    assert wrapped is model
    kept = []
    with torch.no_grad():
        for rows in (3, 5, 3, 3, 7, 5):
            x = torch.randn(rows, 4).to(device)
            kept.append((wrapped(x), plain(x)))
        kept.append((wrapped(x, bypass_hpu_graphs=True), plain(x)))
        kept.append((wrapped(x, warmup_mode=True, cache_tensors_list=[]), plain(x)))
    for result, expected in kept:
        torch.testing.assert_close(result, expected)
    assert len(model.forward.hpu_graph_cache) == (2 if records else 0)
    x = torch.randn(3, 4).to(device)
    loss_of(wrapped, x).backward()
    for one, slope in zip(model.parameters(), fresh_gradients(plain, x)[1]):
        torch.testing.assert_close(one.grad, slope)
    wrapped.clear_cache()


def test_recordings_of_different_arguments(device, monkeypatch):
    """Different arguments must get different recordings, although -1 and -2 have the same hash,
    1 == 1.0 == True, 0.0 == -0.0, and a deque cannot be hashed."""
    monkeypatch.setenv("HCCL_TORCH_HPU_GRAPHS", "1")

    class Scale(torch.nn.Module):
        def forward(self, x, factor):
            return x * (factor[0] if isinstance(factor, collections.deque) else factor)

    x = torch.tensor([3, 4]).to(device)
    wrapped = ht.hpu.wrap_in_hpu_graph(Scale())
    with torch.no_grad():
        for factor in (-1, -2, 1, 1.0, True, 0.0, -0.0, -1, -2):
            result, expected = wrapped(x, factor), x * factor
            assert result.dtype == expected.dtype and torch.equal(1 / result, 1 / expected)
        assert len(wrapped.forward.hpu_graph_cache) == 7
        for factor in range(2, 12):
            assert torch.equal(wrapped(x, collections.deque([factor])), x * factor)


@pytest.mark.parametrize("inplace", [True, False])
def test_module_cacher_trains(device, inplace):
    model, plain = make_model(device), make_model(device)
    cached = ht.hpu.ModuleCacher(max_graphs=10)(
        model=model, use_lfu=False, inplace=inplace, allow_unused_input=True, asynchronous=True,
        have_grad_accumulation=True, log_frequency=5, verbose=False, disable_tensor_cache=True, dry_run=True)
    assert (cached is model) == inplace
    steps = [torch.optim.SGD(one.parameters(), lr=0.05) for one in (cached, plain)]
    for rows in (3, 3, 4, 3):
        x = torch.randn(rows, 4).to(device)
        for one, optimizer in zip((cached, plain), steps):
            optimizer.zero_grad()
            loss_of(one, x).backward()
            optimizer.step()
    for one, other in zip(model.parameters(), plain.parameters()):
        assert torch.equal(one, other)


def test_graphed_callables(device):
    model, plain = make_model(device), make_model(device)
    sample = torch.randn(3, 4).to(device)
    made, square = ht.hpu.make_graphed_callables((model, torch.square), ((sample,), (sample,)), allow_unused_input=True)
    x = torch.randn(3, 4).to(device)
    square(made(x)).sum().backward()
    for one, slope in zip(model.parameters(), fresh_gradients(plain, x)[1]):
        torch.testing.assert_close(one.grad, slope)
    with pytest.raises(TypeError, match="must be tensors"):
        ht.hpu.make_graphed_callables(model, (3,))
    model.register_forward_hook(lambda *arguments: None)
    with pytest.raises(RuntimeError, match="has hooks"):
        ht.hpu.make_graphed_callables(model, (sample,))
