# SPDX-License-Identifier: Apache-2.0
"""HPU graphs: recordings of operations, and modules that use them."""
from hccl_torch_hpu.graphs.modules import (CachedParams, ModuleCacher, copy_to, input_hash, make_graphed_callables,
                                           wrap_in_hpu_graph, wrap_in_hpu_graph_func)
from hccl_torch_hpu.graphs.recording import HPUGraph, graph, graph_pool_handle, is_current_stream_capturing
from hccl_torch_hpu.switches import disable_dynamic_shape, enable_dynamic_shape

__all__ = ["CachedParams", "HPUGraph", "ModuleCacher", "copy_to", "disable_dynamic_shape", "enable_dynamic_shape",
           "graph",
           "graph_pool_handle", "input_hash", "is_current_stream_capturing", "make_graphed_callables",
           "wrap_in_hpu_graph",
           "wrap_in_hpu_graph_func"]
