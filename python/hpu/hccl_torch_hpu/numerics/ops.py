# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.hpu``: the operations that Gaudi kernels implement, with the names and arguments that programs use.

The operations that training needs are composed of differentiable operations. The others have no gradients."""
from __future__ import annotations

import torch

from hccl_torch_hpu.numerics import fp8, int4, moe, rotary

_FP8_OUT = ("bool stochastic_rounding=False, bool is_amax=False, ScalarType? dtype=None, int[]? scale_shape=None) "
            "-> (Tensor, Tensor)")
_GEMM = "(Tensor A, bool trans_A, Tensor B, bool trans_B, Tensor? D, ScalarType out_dtype, "
_GEMM_END = "Tensor? bias=None, bool accumulate=False, int[]? B_scale_shape=None) -> Tensor"
_TOKENS = "(Tensor hidden_states, Tensor expert_routing_table, Tensor router_weights, "
_EXPERTS = "bool permuted_weights, str activation, int experts_min, int experts_max"
_ROTARY = "Tensor sin, Tensor cos, Tensor? position_ids, int offset, int mode) -> Tensor"

_BELOW_AUTOGRAD = (
    (f"cast_to_fp8_v2(Tensor input, Tensor? scale=None, {_FP8_OUT}", fp8.cast_to_fp8),
    (f"cast_to_fp8_v2.scalar(Tensor input, float scale, {_FP8_OUT}", fp8.cast_to_fp8),
    (f"cast_to_fp8_v2.scalar_list(Tensor input, float[] scale, {_FP8_OUT}", fp8.cast_to_fp8),
    ("cast_from_fp8(Tensor input, Tensor? scale, ScalarType out_dtype, int[]? scale_shape=None) -> Tensor",
     fp8.cast_from_fp8),
    ("cast_from_fp8.scalar(Tensor input, float scale, ScalarType out_dtype, int[]? scale_shape=None) -> Tensor",
     fp8.cast_from_fp8),
    ("cast_from_fp8.scalar_list(Tensor input, float[] scale, ScalarType out_dtype, int[]? scale_shape=None) -> Tensor",
     fp8.cast_from_fp8),
    ("cast_to_fp8_just_in_time(Tensor input, int[] block_shape, ScalarType out_dtype, ScalarType scale_dtype) "
     "-> (Tensor, Tensor)", fp8.cast_to_fp8_just_in_time),
    (f"fp8_gemm_v2{_GEMM}Tensor? A_scale_inv=None, Tensor? B_scale_inv=None, {_GEMM_END}", fp8.fp8_gemm),
    (f"fp8_gemm_v2.scalar{_GEMM}float A_scale_inv, float B_scale_inv, {_GEMM_END}", fp8.fp8_gemm),
    (f"fp8_gemm_v2.scalar_list{_GEMM}float[] A_scale_inv, float[] B_scale_inv, {_GEMM_END}", fp8.fp8_gemm),
    ("convert_from_uint4(Tensor input, Tensor scale, Tensor? zero_point, ScalarType out_dtype) -> Tensor",
     int4.convert_from_uint4),
)

_DIFFERENTIABLE = (
    ("softmax_fp8(Tensor input, int dim, Tensor? input_scale=None, Tensor? output_scale=None, "
     "Tensor? inv_attn_heads=None, Tensor? fused_add=None) -> Tensor", fp8.softmax_fp8),
    ("softmax_fp8.Scalar_scales(Tensor input, int dim, float input_scale, float output_scale, "
     "Tensor? inv_attn_heads=None, Tensor? fused_add=None) -> Tensor", fp8.softmax_fp8),
    ("softmax_fp8.Scalar(Tensor input, int dim, float input_scale, float output_scale, float inv_attn_heads, "
     "Tensor? fused_add=None) -> Tensor", fp8.softmax_fp8),
    (f"rotary_pos_embedding(Tensor input, {_ROTARY}", rotary.rotary_pos_embedding),
    (f"rotary_pos_embedding_backward(Tensor grad_in, {_ROTARY}", rotary.rotary_pos_embedding_backward),
    (f"mixture_of_experts{_TOKENS}Tensor[] w1, Tensor[] w2, Tensor[] w3, {_EXPERTS}) -> Tensor",
     moe.mixture_of_experts),
    (f"mixture_of_experts.fused_weights{_TOKENS}Tensor[] w12, Tensor[] w3, {_EXPERTS}) -> Tensor",
     moe.mixture_of_experts_fused),
    (f"mixture_of_experts.fp8_measurement{_TOKENS}Tensor[] w1, Tensor[] w2, Tensor[] w3, {_EXPERTS}, "
     "bool measurement_mode) -> (Tensor, Tensor)", moe.mixture_of_experts_measured),
    (f"mixture_of_experts.fp8_measurement_fused_weights{_TOKENS}Tensor[] w12, Tensor[] w3, {_EXPERTS}, "
     "bool measurement_mode) -> (Tensor, Tensor)", moe.mixture_of_experts_measured_fused),
    (f"mixture_of_experts.fp8_blocks{_TOKENS}Tensor[] w1, Tensor[] w2, Tensor[] w3, Tensor[] d_scale_w1, "
     "Tensor[] d_scale_w2, Tensor[] d_scale_w3, bool permuted_weights, str activation, int block_size, int "
     "experts_min, int experts_max) -> Tensor", moe.mixture_of_experts_blocks),
)

_library: torch.library.Library | None = None


def register() -> None:
    """Defines the operations. Later calls do nothing."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("hpu", "FRAGMENT")
    for operations, key in ((_BELOW_AUTOGRAD, "CompositeExplicitAutograd"),
                            (_DIFFERENTIABLE, "CompositeImplicitAutograd")):
        for schema, function in operations:
            _library.define(schema)
            _library.impl(schema.partition("(")[0], function, key)
