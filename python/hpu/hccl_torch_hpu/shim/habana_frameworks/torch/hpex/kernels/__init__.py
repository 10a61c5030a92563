# SPDX-License-Identifier: Apache-2.0
"""Attention, rotary embeddings, the CTC loss, and 8-bit casts.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch.hpex.kernels import Fp8Ops
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.numerics import ops
from hccl_torch_hpu.numerics.attention import FusedSDPA, PySDPA
from hccl_torch_hpu.numerics.ctc import CTCLoss
from hccl_torch_hpu.numerics.rotary import (RotaryPosEmbeddingHelperV1, RotaryPosEmbeddingHelperV2,
                                            RotaryPosEmbeddingHelperV3, RotaryPosEmbeddingMode, apply_rotary_pos_emb)

ops.register()

__all__ = ["CTCLoss", "Fp8Ops", "FusedSDPA", "PySDPA", "RotaryPosEmbeddingHelperV1", "RotaryPosEmbeddingHelperV2",
           "RotaryPosEmbeddingHelperV3", "RotaryPosEmbeddingMode", "apply_rotary_pos_emb"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      fp8_fused_sdpa="use FusedSDPA on the results of cast_from_fp8", CustomSoftmax="use torch.softmax",
                      PySDPAHinted="use PySDPA")
