# SPDX-License-Identifier: Apache-2.0
"""Rotary position embeddings, in the two layouts that models use: element i is paired with element i + size/2, or with its
neighbour."""
from __future__ import annotations

import enum
from typing import Any

import torch


class RotaryPosEmbeddingMode(enum.Enum):
    """Selects which elements of the last dimension form pairs."""

    BLOCKWISE = 0  # element i with element i + size / 2, as in LLaMA and GPT-NeoX
    PAIRWISE = 1  # element 2i with element 2i + 1, as in GPT-J and ChatGLM


def rotate(x: torch.Tensor, mode: int) -> torch.Tensor:
    """Replaces each pair (a, b) with (-b, a)."""
    if mode == RotaryPosEmbeddingMode.BLOCKWISE.value:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def _look_up(table: torch.Tensor, x: torch.Tensor, position_ids: torch.Tensor | None, offset: int,
             mode: int) -> torch.Tensor:
    """Returns a table of cosines or sines in a shape that broadcasts with ``x``."""
    if position_ids is not None:
        return _rows(table, position_ids)
    size = x.size(-1)
    if mode == RotaryPosEmbeddingMode.BLOCKWISE.value:
        return table[..., offset:offset + size]
    return table.repeat_interleave(2, dim=-1) if table.size(-1) * 2 == size else table


def _rows(table: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
    """Returns the rows at the positions ``[batch, length]`` as ``[batch, 1 or heads, length, size]``.

    The table is ``[positions, size]``, optionally with leading dimensions for the batch and the heads.
    """
    if table.dim() == 4 and table.size(1) > 1:
        index = position_ids[:, None, :, None].expand(-1, table.size(1), -1, table.size(3))
        return torch.gather(table.expand(position_ids.size(0), -1, -1, -1), 2, index)
    while table.dim() > 2 and table.size(0) == 1:
        table = table.squeeze(0)
    if table.dim() == 2:
        return table[position_ids].unsqueeze(1)
    table = table.reshape(table.size(0), table.size(-2), table.size(-1))
    return torch.gather(table, 1, position_ids[..., None].expand(-1, -1, table.size(-1))).unsqueeze(1)


def rotary_pos_embedding(input: torch.Tensor, sin: torch.Tensor, cos: torch.Tensor, position_ids: torch.Tensor | None,
                         offset: int, mode: int) -> torch.Tensor:
    """Returns ``input cos + rotate(input) sin``.

    Args:
        sin, cos: tables of ``[positions, size]`` with ``position_ids``, else tensors that broadcast with the input; in
            pairwise mode, these may have one element for each pair.
        position_ids: ``[batch, length]`` for inputs of ``[batch, heads, length, size]``, or None.
        offset: the first index to use in the tables' last dimension; used only in blockwise mode without positions.
        mode: a value of ``RotaryPosEmbeddingMode``.
    """
    sin, cos = (_look_up(one, input, position_ids, offset, mode) for one in (sin, cos))
    return input * cos + rotate(input, mode) * sin


def rotary_pos_embedding_backward(grad_in: torch.Tensor, sin: torch.Tensor, cos: torch.Tensor,
                                  position_ids: torch.Tensor | None, offset: int, mode: int) -> torch.Tensor:
    """Returns the gradient of the input of ``rotary_pos_embedding``."""
    sin, cos = (_look_up(one, grad_in, position_ids, offset, mode) for one in (sin, cos))
    return grad_in * cos - rotate(grad_in * sin, mode)


def _match_types(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> list[torch.Tensor]:
    """Converts all tensors to float32 if one of them has that type, else to the input's type."""
    dtype = torch.float32 if torch.float32 in (p.dtype, cos.dtype, sin.dtype) else p.dtype
    return [one.to(dtype) for one in (p, cos, sin)]


def apply_rotary_pos_emb(p: torch.Tensor, *args: Any) -> torch.Tensor:
    """Returns the input with its positions embedded.

    The arguments are ``p, rope_cache``, as ``RotaryPosEmbeddingHelperV3`` takes them, or ``p, cos, sin,
    position_ids=None, offset=0, mode=BLOCKWISE``. The result is in float32 if one of ``p``, ``cos`` and ``sin`` is.
    """
    if len(args) == 1:
        return RotaryPosEmbeddingHelperV3.apply(p, args[0])
    cos, sin, position_ids, offset, mode = (*args, *(None, 0, RotaryPosEmbeddingMode.BLOCKWISE)[len(args) - 2:])
    p, cos, sin = _match_types(p, cos, sin)
    return torch.ops.hpu.rotary_pos_embedding(p, sin, cos, position_ids, offset or 0, mode.value)


class RotaryPosEmbeddingHelperV1:
    """Blockwise embedding with a slice of the tables."""

    @staticmethod
    def apply(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, offset: int) -> torch.Tensor:
        """Returns ``p`` with its positions embedded. Uses the tables' last dimension starting at ``offset``."""
        return apply_rotary_pos_emb(p, cos, sin, None, offset)


class RotaryPosEmbeddingHelperV2:
    """Blockwise embedding with positions."""

    @staticmethod
    def apply(p: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position_ids: torch.Tensor | None) -> torch.Tensor:
        """Returns ``p`` of ``[batch, heads, length, size]`` with the positions of ``position_ids`` embedded."""
        return apply_rotary_pos_emb(p, cos, sin, position_ids)


class RotaryPosEmbeddingHelperV3:
    """Pairwise embedding with one table for cosines and sines."""

    @staticmethod
    def apply(p: torch.Tensor, rope_cache: torch.Tensor) -> torch.Tensor:
        """Returns ``p`` of ``[length, batch, heads, size]`` with its positions embedded in the first ``2 * pairs``
        elements of its last dimension. The other elements are unchanged.

        Args:
            rope_cache: ``[positions, (batch,) pairs, 2]``, cosine and sine of each pair.
        """
        length, size = p.size(0), rope_cache.size(-2) * 2
        turned, rest = p[..., :size], p[..., size:]
        table = rope_cache[:length].reshape(length, -1, 1, size // 2, 2)
        cos, sin = (table[..., part].repeat_interleave(2, dim=-1).to(p.dtype) for part in (0, 1))
        mode = RotaryPosEmbeddingMode.PAIRWISE.value
        return torch.cat((torch.ops.hpu.rotary_pos_embedding(turned, sin, cos, None, 0, mode), rest), dim=-1)
