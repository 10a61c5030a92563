# SPDX-License-Identifier: Apache-2.0
"""Lazy-mode steps, and preparations for inference.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch import hpu
from habana_frameworks.torch.core import quantization, step_closure
from habana_frameworks.torch.core.quantization import (hpu_inference_initialize, hpu_initialize, hpu_reset_env,
                                                       hpu_set_env,
                                                       hpu_set_inference_env, hpu_teardown_inference_env)
from habana_frameworks.torch.core.step_closure import add_step_closure, iter_mark_step, mark_step
from hccl_torch_hpu.lazy import is_lazy
from hccl_torch_hpu.missing import missing

__all__ = ["add_step_closure", "hpu", "hpu_inference_initialize", "hpu_initialize", "hpu_reset_env", "hpu_set_env",
           "hpu_set_inference_env", "hpu_teardown_inference_env", "is_lazy", "iter_mark_step", "mark_step",
           "quantization",
           "step_closure"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
