# SPDX-License-Identifier: Apache-2.0
"""Preparations for inference.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.quantization.inference import (hpu_inference_initialize, hpu_initialize, hpu_reset_env, hpu_set_env,
                                                   hpu_set_inference_env, hpu_teardown_inference_env)

__all__ = ["hpu_inference_initialize", "hpu_initialize", "hpu_reset_env", "hpu_set_env", "hpu_set_inference_env",
           "hpu_teardown_inference_env"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
