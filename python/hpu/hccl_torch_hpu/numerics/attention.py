# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention with the arguments of a Gaudi's fused kernel."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

_PADDING_SIDES = ("left", "right", "none")


class FusedSDPA:
    """Attention on queries, keys and values of shape ``[batch, heads, length, size]`` or ``[heads, length, size]``."""

    @staticmethod
    def apply(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, softmax_mode: str = "None",
              recompute_mode: bool | None = None, valid_seq_len: torch.Tensor | None = None,
              seq_padding_type: str = "left", return_dropout_mask: bool = False,
              return_attn_probs: bool = False) -> Any:
        """Returns ``dropout(softmax(q k^T scale + mask)) v``, of the shape and type of ``q``.

        If the inputs have a batch dimension, keys and values may have fewer heads than queries. Each of their heads
        then serves a group of query heads.

        Args:
            attn_mask: broadcasts to ``[batch, heads, queries, keys]``; booleans, where False excludes a key, or numbers
                that are added to the scaled q k^T.
            is_causal: query i attends only to the keys up to i.
            scale: 1 / sqrt(size) if it is None.
            softmax_mode: "None", "fast" or "fp32"; a Gaudi rounds differently in each mode, but the
                emulation ignores the mode.
            recompute_mode: whether a Gaudi recomputes the weights in the backward pass; does not affect the results.
            valid_seq_len: for causal inference; for each sequence of the batch, the number of keys that are not
                padding.
            seq_padding_type: the side of that padding, "left" or "right"; "none" means "right".
            return_attn_probs: for inference; also returns the weights before dropout.

        Raises:
            ValueError: a Gaudi does not support this combination of arguments.
            NotImplementedError: ``return_dropout_mask`` is True.
        """
        trains = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
        _check(trains, attn_mask, is_causal, valid_seq_len, seq_padding_type, return_dropout_mask, return_attn_probs)
        scale = 1.0 / math.sqrt(q.size(-1)) if scale is None else scale
        k, v = _repeat_heads(q, k), _repeat_heads(q, v)
        if valid_seq_len is not None:
            attn_mask, is_causal = _valid_mask(q, k, valid_seq_len, seq_padding_type), False
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            attn_mask = attn_mask.to(q.dtype)
        if attn_mask is not None and is_causal:
            attn_mask, is_causal = _merge(attn_mask, _causal_mask(q, k)), False
        if return_attn_probs:
            return _with_weights(q, k, v, attn_mask, dropout_p, is_causal, scale)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale)


class PySDPA:
    """Attention without a mask, or with a causal one."""

    @staticmethod
    def apply(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False,
              with_slice: bool = False) -> torch.Tensor:
        """Returns the result of ``FusedSDPA``. Ignores ``with_slice``, which controls how a Gaudi splits the work."""
        return FusedSDPA.apply(q, k, v, None, 0.0, is_causal)


def _check(trains: bool, mask: Any, is_causal: bool, valid_seq_len: Any, padding: str, return_dropout_mask: bool,
           return_attn_probs: bool) -> None:
    if return_dropout_mask:
        raise NotImplementedError("FusedSDPA: return_dropout_mask is not supported; use torch.nn.functional.dropout "
                                  "on the weights that return_attn_probs returns")
    if return_attn_probs and trains:
        raise ValueError("FusedSDPA: return_attn_probs is for inference; call it under torch.no_grad()")
    if valid_seq_len is not None and (trains or not is_causal or mask is not None):
        raise ValueError("FusedSDPA: valid_seq_len is for causal inference without attn_mask; pass a mask instead")
    if padding.lower() not in _PADDING_SIDES:
        raise ValueError(f"FusedSDPA: seq_padding_type is '{padding}'; it must be one of {', '.join(_PADDING_SIDES)}")


def _repeat_heads(q: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Repeats keys or values of four dimensions so that they have as many heads as the queries."""
    if q.dim() != 4 or other.size(1) == q.size(1):
        return other
    return other.repeat_interleave(q.size(1) // other.size(1), dim=1)


def _causal_mask(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.ones(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device).tril()


def _merge(mask: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    if mask.dtype == torch.bool:
        return mask & allowed
    return mask.masked_fill(~allowed, -math.inf)


def _valid_mask(q: torch.Tensor, k: torch.Tensor, valid: torch.Tensor, padding: str) -> torch.Tensor:
    """Returns ``[batch, 1, queries, keys]``, which is True where a query may attend to a key: the key is not padding
    and does not come after the query."""
    positions = torch.arange(k.size(-2), device=q.device)
    lengths = valid.to(q.device).reshape(-1, 1)
    if padding.lower() == "left":
        is_valid = positions >= k.size(-2) - lengths
    else:
        is_valid = positions < lengths
    return is_valid[:, None, None, :] & _causal_mask(q, k)


def _with_weights(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, dropout_p: float,
                  is_causal: bool, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    scores = (q @ k.transpose(-2, -1)) * scale
    if is_causal:
        mask = _causal_mask(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return functional.dropout(weights, dropout_p) @ v, weights
