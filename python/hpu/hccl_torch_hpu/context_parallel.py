# SPDX-License-Identifier: Apache-2.0
"""Attention on sequences that are sharded across ranks. One exchange gives each rank all positions of some heads, so
the rank computes attention on whole sequences. A second exchange shards the results by position again."""
from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import torch
import torch.distributed as dist

# Optimum imports DistributedAttention from this module, and needs nothing else from DeepSpeed for
# context parallelism.
MODULE = "deepspeed.sequence.layer"


class _Exchange(torch.autograd.Function):
    """Splits one dimension among the ranks and joins another. The backward pass does the reverse with the gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any, scatter: int, gather: int) -> torch.Tensor:
        ctx.group, ctx.scatter, ctx.gather = group, scatter, gather
        return exchange(tensor, group, scatter, gather)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        return exchange(gradient, ctx.group, ctx.gather, ctx.scatter), None, None, None


def exchange(tensor: torch.Tensor, group: Any, scatter: int, gather: int) -> torch.Tensor:
    """Splits the dimension ``scatter`` among the ranks, and joins the ranks' parts of the dimension
    ``gather`` in rank order. Blocks until all ranks of the group have called this function.

    Raises:
        ValueError: the dimension ``scatter`` cannot be divided among the ranks.
    """
    ranks = dist.get_world_size(group)
    if tensor.size(scatter) % ranks:
        raise ValueError(f"context parallelism: {tensor.size(scatter)} heads or positions cannot be divided among "
                         f"{ranks} ranks; choose a context_parallel_size that divides them")
    given = torch.stack([one.contiguous() for one in tensor.chunk(ranks, dim=scatter)])
    taken = torch.empty_like(given)
    dist.all_to_all_single(taken, given, group=group)
    return torch.cat(taken.unbind(0), dim=gather)


class DistributedAttention(torch.nn.Module):
    """Computes attention on sequences that are sharded across the ranks of a group.

    Args:
        local_attention: the attention function, called with the queries, keys and values of this rank's heads at all
            positions.
        sequence_process_group: the group.
        scatter_idx: the dimension that holds the heads.
        gather_idx: the dimension that holds the positions.
        sp_stream: accepted but ignored; everything runs on the current stream.
    """

    def __init__(self, local_attention: Any, sequence_process_group: Any, scatter_idx: int = 2, gather_idx: int = 0,
                 sp_stream: Any = None) -> None:
        super().__init__()
        self.local_attn = local_attention
        self.spg = sequence_process_group
        self.scatter_idx = scatter_idx
        self.gather_idx = gather_idx

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, batch_dim_idx: int = 0,
                rotary_pos_emb: Any = None, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Returns the attention at this rank's positions, for all heads. Blocks until all ranks of
        the group have called this method.

        Args:
            batch_dim_idx: accepted but ignored; ``scatter_idx`` and ``gather_idx`` determine the layout.
            rotary_pos_emb: must be None.
            args, kwargs: passed to ``local_attention``.

        Raises:
            NotImplementedError: ``rotary_pos_emb`` is not None.
            ValueError: the heads cannot be divided among the ranks.
        """
        if rotary_pos_emb is not None:
            raise NotImplementedError("DistributedAttention: rotary_pos_emb is not supported; rotate queries and "
                                      "keys before the call")
        whole = [_Exchange.apply(one, self.spg, self.scatter_idx, self.gather_idx) for one in (query, key, value)]
        return _Exchange.apply(self.local_attn(*whole, *args, **kwargs), self.spg, self.gather_idx, self.scatter_idx)


def offer_distributed_attention() -> None:
    """Makes ``from deepspeed.sequence.layer import DistributedAttention`` find the class of this module if DeepSpeed
    is not installed. Does not add a package "deepspeed", so that programs can still detect that DeepSpeed is
    missing."""
    if MODULE in sys.modules or importlib.util.find_spec("deepspeed") is not None:
        return
    module = types.ModuleType(MODULE, f"Made by hccl-torch-hpu: {__doc__}")
    module.DistributedAttention = DistributedAttention
    sys.modules[MODULE] = module
