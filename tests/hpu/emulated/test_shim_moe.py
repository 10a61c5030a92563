# SPDX-License-Identifier: Apache-2.0
"""Tests the mixture of experts against a loop over tokens."""
import pytest
import torch
from torch.nn import functional

import habana_frameworks.torch.core  # noqa: F401
from habana_frameworks.torch.hpu import HPUGraph, graph

ACTIVATIONS = {"gelu": functional.gelu, "relu": functional.relu, "silu": functional.silu}


def make(device, permuted, experts=5, hidden=6, inner=8, tokens=7):
    x = torch.randn(tokens, hidden).to(device).requires_grad_()
    weights, routing = torch.topk(torch.rand(tokens, experts), 2)
    shapes = (hidden, inner), (hidden, inner), (inner, hidden)
    matrices = [[torch.randn(shape[::-1] if permuted else shape).to(device).requires_grad_() for _ in range(experts)]
                for shape in shapes]
    return x, routing.to(device), weights.to(device).requires_grad_(), matrices


def loop(x, routing, weights, matrices, permuted, activation, first, last):
    """Computes the expected result token by token and expert by expert."""
    rows = []
    for token in range(x.size(0)):
        total = torch.zeros_like(x[token])
        for expert, weight in zip(routing[token].tolist(), weights[token]):
            if first <= expert <= last:
                w1, w2, w3 = (one[expert - first].t() if permuted else one[expert - first] for one in matrices)
                total = total + weight * ((ACTIVATIONS[activation](x[token] @ w1) * (x[token] @ w2)) @ w3)
        rows.append(total)
    return torch.stack(rows)


def slopes(result, x, weights, matrices):
    inputs = [x, weights, *(one for kind in matrices for one in kind)]
    found = torch.autograd.grad(result.square().sum(), inputs, allow_unused=True)
    return [torch.zeros_like(one) if slope is None else slope for one, slope in zip(inputs, found)]


@pytest.mark.parametrize("permuted", [True, False])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("fused", [False, True])
def test_values_and_gradients(device, permuted, activation, fused):
    x, routing, weights, matrices = make(device, permuted)
    given = matrices
    if fused:
        given = [[torch.cat(pair, dim=0 if permuted else 1) for pair in zip(*matrices[:2])], matrices[2]]
    result = torch.ops.hpu.mixture_of_experts(x, routing, weights, *given, permuted, activation, 0, 4)
    expected = loop(x, routing, weights, matrices, permuted, activation, 0, 4)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    for one, other in zip(slopes(result, x, weights, matrices), slopes(expected, x, weights, matrices)):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_partial_expert_sums_add_up(device):
    x, routing, weights, matrices = make(device, True)
    names = {"hidden_states": x, "expert_routing_table": routing, "router_weights": weights, "permuted_weights": True,
             "activation": "silu"}
    parts = [torch.ops.hpu.mixture_of_experts(
        **names, w1=matrices[0][first:last + 1], w2=matrices[1][first:last + 1], w3=matrices[2][first:last + 1],
        experts_min=first, experts_max=last) for first, last in ((0, 1), (2, 4))]
    torch.testing.assert_close(sum(parts), loop(x, routing, weights, matrices, True, "silu", 0, 4), rtol=1e-4,
                               atol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_measurement(device, fused):
    x, routing, weights, matrices = make(device, True)
    given = [[torch.cat(pair) for pair in zip(*matrices[:2])], matrices[2]] if fused else matrices
    result, largest = torch.ops.hpu.mixture_of_experts(x, routing, weights, *given, True, "relu", 0, 4, True)
    torch.testing.assert_close(result, loop(x, routing, weights, matrices, True, "relu", 0, 4), rtol=1e-4, atol=1e-4)
    for expert in range(5):
        inner = torch.relu(x @ matrices[0][expert].t()) * (x @ matrices[1][expert].t())
        torch.testing.assert_close(largest[expert], inner.max())


def test_8_bit_matrices_with_a_scale_per_block(device):
    x, routing, weights, matrices = make(device, True, hidden=8, inner=8)
    eight, factors, wide = [], [], []
    for kind in matrices:
        pairs = [torch.ops.hpu.cast_to_fp8_just_in_time(one.detach(), [4, 4], out_dtype=torch.float8_e4m3fn,
                                                        scale_dtype=torch.float32) for one in kind]
        eight.append([one for one, _ in pairs])
        factors.append([one for _, one in pairs])
        wide.append([one.float() * factor.repeat_interleave(4, 0).repeat_interleave(4, 1) for one, factor in pairs])
    result = torch.ops.hpu.mixture_of_experts(
        hidden_states=x, expert_routing_table=routing, router_weights=weights, w1=eight[0], w2=eight[1], w3=eight[2],
        d_scale_w1=factors[0], d_scale_w2=factors[1], d_scale_w3=factors[2], permuted_weights=True, activation="silu",
        block_size=4, experts_min=0, experts_max=4)
    torch.testing.assert_close(result, loop(x, routing, weights, wide, True, "silu", 0, 4), rtol=1e-4, atol=1e-4)


def test_recording_replays_with_other_routes(device):
    x, routing, weights, matrices = make(device, True)
    recording = HPUGraph()
    with torch.no_grad(), graph(recording):
        result = torch.ops.hpu.mixture_of_experts(x, routing, weights, *matrices, True, "silu", 0, 4)
    routing.copy_(torch.zeros_like(routing).add_(torch.tensor([3, 1]).to(device)))
    recording.replay()
    torch.testing.assert_close(result, loop(x, routing, weights, matrices, True, "silu", 0, 4).detach(), rtol=1e-4,
                               atol=1e-4)


def test_unknown_activation_is_refused(device):
    x, routing, weights, matrices = make(device, True)
    with pytest.raises(ValueError, match="activation is 'tanh'; it must be one of"):
        torch.ops.hpu.mixture_of_experts(x, routing, weights, *matrices, True, "tanh", 0, 4)
