# SPDX-License-Identifier: Apache-2.0
"""Mixture of experts: each token is routed to some of the experts, and their weighted results are added."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from hccl_torch_hpu.graphs.recording import is_current_stream_capturing
from hccl_torch_hpu.numerics.fp8 import spread

_ACTIVATIONS = {"gelu": functional.gelu, "relu": functional.relu, "silu": functional.silu}

# The function of one expert, called with the expert's index and its tokens.
Expert = Callable[[int, torch.Tensor], torch.Tensor]


def _activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if name not in _ACTIVATIONS:
        raise ValueError(f"mixture_of_experts: activation is '{name}'; it must be one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]


def _times(x: torch.Tensor, weight: torch.Tensor, permuted: bool) -> torch.Tensor:
    return x @ (weight.t() if permuted else weight)


def _split(w12: Sequence[torch.Tensor], permuted: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    halves = [one.chunk(2, dim=0 if permuted else 1) for one in w12]
    return [one for one, _ in halves], [one for _, one in halves]


def _inner(w1: Sequence[torch.Tensor], w2: Sequence[torch.Tensor], permuted: bool, activation: str) -> Expert:
    act = _activation(activation)
    return lambda number, x: act(_times(x, w1[number], permuted)) * _times(x, w2[number], permuted)


def _mix(hidden: torch.Tensor, routing: torch.Tensor, weights: torch.Tensor, expert: Expert, first: int,
         last: int) -> torch.Tensor:
    """Returns the weighted sum of the experts' results. While operations are being recorded or compiled, no tensor's
    shape depends on values."""
    tokens = hidden.reshape(-1, hidden.size(-1))
    routing, weights = routing.reshape(tokens.size(0), -1), weights.reshape(tokens.size(0), -1)
    keeps_shapes = is_current_stream_capturing() or torch.compiler.is_compiling()
    result = torch.zeros_like(tokens)
    for number in range(last - first + 1):
        chosen = routing == first + number
        share = (weights * chosen).sum(dim=-1, keepdim=True)
        if keeps_shapes:
            result = result + (expert(number, tokens) * share).to(tokens.dtype)
            continue
        rows = chosen.any(dim=-1).nonzero().squeeze(-1)
        if rows.numel():
            result = result.index_add(0, rows, (expert(number, tokens[rows]) * share[rows]).to(tokens.dtype))
    return result.reshape(hidden.shape)


def mixture_of_experts(hidden_states: torch.Tensor, expert_routing_table: torch.Tensor, router_weights: torch.Tensor,
                       w1: list[torch.Tensor], w2: list[torch.Tensor], w3: list[torch.Tensor], permuted_weights: bool,
                       activation: str, experts_min: int, experts_max: int) -> torch.Tensor:
    """Returns for each token the sum of ``weight (activation(x w1) * (x w2)) w3`` over its experts.

    Args:
        hidden_states: tokens, ``[..., hidden]``.
        expert_routing_table: the numbers of each token's experts, ``[tokens, experts per token]``.
        router_weights: the weights of these experts, in the same shape.
        w1, w2, w3: a matrix for each expert from ``experts_min`` to ``experts_max``; the results of other experts are
            omitted.
        permuted_weights: the matrices are transposed, like those of ``torch.nn.Linear``.
        activation: "gelu", "relu" or "silu".

    Raises:
        ValueError: ``activation`` has another value.
    """
    inner = _inner(w1, w2, permuted_weights, activation)
    return _mix(hidden_states, expert_routing_table, router_weights,
                lambda number, x: _times(inner(number, x), w3[number], permuted_weights), experts_min, experts_max)


def mixture_of_experts_fused(hidden_states: torch.Tensor, expert_routing_table: torch.Tensor,
                             router_weights: torch.Tensor,
                             w12: list[torch.Tensor], w3: list[torch.Tensor], permuted_weights: bool, activation: str,
                             experts_min: int, experts_max: int) -> torch.Tensor:
    """Returns the result of ``mixture_of_experts``. ``w12`` has w1 and w2 of each expert side by side."""
    w1, w2 = _split(w12, permuted_weights)
    return mixture_of_experts(hidden_states, expert_routing_table, router_weights, w1, w2, w3, permuted_weights,
                              activation,
                              experts_min, experts_max)


def mixture_of_experts_measured(hidden_states: torch.Tensor, expert_routing_table: torch.Tensor,
                                router_weights: torch.Tensor, w1: list[torch.Tensor], w2: list[torch.Tensor],
                                w3: list[torch.Tensor], permuted_weights: bool, activation: str, experts_min: int,
                                experts_max: int, measurement_mode: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the result of ``mixture_of_experts``, and one value for each expert: the largest element, over all
    tokens, of the vector that w3 multiplies. The values are 0 if ``measurement_mode`` is False."""
    result = mixture_of_experts(hidden_states, expert_routing_table, router_weights, w1, w2, w3, permuted_weights,
                                activation, experts_min, experts_max)
    amax = torch.zeros(len(w1), dtype=torch.float32, device=hidden_states.device)
    if measurement_mode:
        inner = _inner(w1, w2, permuted_weights, activation)
        tokens = hidden_states.reshape(-1, hidden_states.size(-1))
        amax = torch.stack([inner(number, tokens).amax().float() for number in range(len(w1))])
    return result, amax


def mixture_of_experts_measured_fused(hidden_states: torch.Tensor, expert_routing_table: torch.Tensor,
                                      router_weights: torch.Tensor, w12: list[torch.Tensor], w3: list[torch.Tensor],
                                      permuted_weights: bool, activation: str, experts_min: int, experts_max: int,
                                      measurement_mode: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the result of ``mixture_of_experts_measured``. ``w12`` has w1 and w2 of each expert side by side."""
    w1, w2 = _split(w12, permuted_weights)
    return mixture_of_experts_measured(hidden_states, expert_routing_table, router_weights, w1, w2, w3,
                                       permuted_weights,
                                       activation, experts_min, experts_max, measurement_mode)


def mixture_of_experts_blocks(hidden_states: torch.Tensor, expert_routing_table: torch.Tensor,
                              router_weights: torch.Tensor, w1: list[torch.Tensor], w2: list[torch.Tensor],
                              w3: list[torch.Tensor], d_scale_w1: list[torch.Tensor], d_scale_w2: list[torch.Tensor],
                              d_scale_w3: list[torch.Tensor], permuted_weights: bool, activation: str, block_size: int,
                              experts_min: int, experts_max: int) -> torch.Tensor:
    """Returns the result of ``mixture_of_experts`` for 8-bit matrices. ``d_scale_w1`` to ``d_scale_w3`` have a factor
    for each block of ``block_size`` rows and columns."""
    w1, w2, w3 = ([(one.float() * spread(scale.float(), one, False)).to(hidden_states.dtype)
                   for one, scale in zip(weights, scales)]
                  for weights, scales in ((w1, d_scale_w1), (w2, d_scale_w2), (w3, d_scale_w3)))
    return mixture_of_experts(hidden_states, expert_routing_table, router_weights, w1, w2, w3, permuted_weights,
                              activation,
                              experts_min, experts_max)
