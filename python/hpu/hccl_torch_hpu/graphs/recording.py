# SPDX-License-Identifier: Apache-2.0
"""HPU graphs: recordings of operations that can be executed again on the same tensors.

A recording stores each operation that reached the device, with its tensors. A replay executes the operations again in
the same order, and writes their results into the tensors that they returned the first time. Everything that refers to
those tensors then sees the new values: outputs, buffers, and gradients of a recorded backward pass.
"""
from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves

from hccl_torch_hpu import metrics

# A replay skips these dispatch keys, because the recorder sees operations below autograd, version counters and
# autocast.
_ABOVE_RECORDING = ("AutogradFunctionality", "AutogradOther", "AutogradNestedTensor", "ADInplaceOrView", "AutocastCPU",
                    "AutocastHPU", "AutocastCUDA", "AutocastXPU", "AutocastPrivateUse1")

# Operations whose outputs have undefined contents, so a replay need not execute the operations
# again.
_WITHOUT_CONTENTS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")

# Collectives change their arguments although their schemas do not declare it. The functional collectives return
# tensors for which the caller must wait.
_COLLECTIVES = "c10d"
_FUNCTIONAL_COLLECTIVES = "_c10d_functional"

_pools = itertools.count(1)
_capturing = threading.local()


def _keys_above_recording() -> torch._C.DispatchKeySet:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined)
    for name in _ABOVE_RECORDING:
        if hasattr(torch._C.DispatchKey, name):
            keys = keys.add(getattr(torch._C.DispatchKey, name))
    return keys


class _Operation:
    """One recorded call: its function, its arguments, and the outputs that a replay must fill."""

    def __init__(self, function: Any, arguments: tuple, keywords: dict, result: Any) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        inputs = {_storage(one) for one in tree_leaves((arguments, keywords)) if isinstance(one, torch.Tensor)}
        self.outputs = [one if isinstance(one, torch.Tensor) and _storage(one) not in inputs else None
                        for one in tree_leaves(result)]
        name = function._schema.name.rpartition("::")[2]
        changes_inputs = _changes_inputs(function)
        fills = name not in _WITHOUT_CONTENTS and any(one is not None for one in self.outputs)
        gives_tensors = any(isinstance(one, torch.Tensor) for one in tree_leaves(result))
        self.is_needed = changes_inputs or fills or not gives_tensors

    def replay(self) -> None:
        """Executes the call again, and writes the results into the recorded outputs.

        Raises:
            RuntimeError: an output has a different shape than in the recording.
        """
        renewed = tree_leaves(self.function(*self.arguments, **self.keywords))
        for old, new in zip(self.outputs, renewed):
            _finish(self.function, new)
            if old is None:
                continue
            if old.shape != new.shape:
                raise RuntimeError(
                    f"hccl_torch_hpu: HPUGraph.replay: {self.function} returned shape {tuple(new.shape)}, but "
                    f"{tuple(old.shape)} during the capture; do not record operations whose output shape "
                    "depends on values")
            else:
                old.copy_(new)


def _storage(tensor: torch.Tensor) -> int:
    """Returns a number that is equal for two tensors if and only if they share a storage. For a tensor without a
    storage, the number identifies the tensor itself."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _changes_inputs(function: Any) -> bool:
    return function._schema.is_mutable or function.namespace == _COLLECTIVES


def _finish(function: Any, result: Any) -> None:
    """Blocks until the collective that returned ``result`` has ended. Returns at once if ``function`` is not a
    collective."""
    if function.namespace == _COLLECTIVES and isinstance(result, torch.ScriptObject):
        dist.Work.unbox(result).wait()
    elif function.namespace == _FUNCTIONAL_COLLECTIVES and isinstance(result, torch.Tensor):
        torch.ops._c10d_functional.wait_tensor(result)


class _Recorder(TorchDispatchMode):
    """Records calls. The autograd engine passes the mode to its threads, so backward passes are recorded as well."""

    def __init__(self, saves_inputs: bool) -> None:
        super().__init__()
        self.operations: list[_Operation] = []
        self._lock = threading.Lock()
        self._made_here: set[int] = set()
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = {} if saves_inputs else None

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        keywords = kwargs or {}
        if self._saved is not None and _changes_inputs(func):
            self._save_changed(func, args, keywords)
        result = func(*args, **keywords)
        for one in tree_leaves(result):  # the recorder is off here, so the wait is not recorded
            _finish(func, one)
        operation = _Operation(func, args, keywords, result)
        with self._lock:
            self._made_here.update(_storage(one) for one in operation.outputs if one is not None)
            self.operations.append(operation)
        return result

    def _save_changed(self, function: Any, arguments: tuple, keywords: dict) -> None:
        """Copies the tensors that the call is about to change, except tensors that were created during the
        recording."""
        given = dict(zip((one.name for one in function._schema.arguments), arguments)) | keywords
        for argument in function._schema.arguments:
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            if not is_written and function.namespace != _COLLECTIVES:
                continue
            for tensor in tree_leaves(given.get(argument.name)):
                if isinstance(tensor, torch.Tensor) and _storage(tensor) not in self._made_here:
                    self._saved.setdefault(id(tensor), (tensor, tensor.clone()))

    def restore(self) -> None:
        """Undoes the changes of a dry run."""
        with torch.no_grad():
            for tensor, copy in reversed(list((self._saved or {}).values())):
                tensor.copy_(copy)


class HPUGraph:
    """A recording of the operations between ``capture_begin`` and ``capture_end``, in this thread and in the backward
    passes that this thread starts.

    Capturing executes the operations, so the outputs are valid immediately. Random operations draw new numbers in each
    replay. The values that Python code computes, and the branches that it takes, stay as they were during the capture.
    """

    def __init__(self) -> None:
        self._recorder: _Recorder | None = None
        self._operations: list[_Operation] | None = None
        self._pool: Any = None
        self._inputs: list[torch.Tensor] = []

    def capture_begin(self, dry_run: bool = False, pool: Any = None) -> None:
        """Begins the recording.

        Args:
            dry_run: ``capture_end`` restores the values of tensors that existed before the capture, as if nothing had
                been executed.
            pool: a handle from ``graph_pool_handle()`` or another graph's ``pool()``. Has no effect, because graphs do
                not share memory.

        Raises:
            RuntimeError: this thread is already capturing.
        """
        if is_current_stream_capturing():
            raise RuntimeError("hccl_torch_hpu: HPUGraph.capture_begin: a capture is under way; end it with "
                               "capture_end()")
        self._pool = pool if pool is not None else graph_pool_handle()
        self._recorder = _Recorder(dry_run)
        self._recorder.__enter__()
        _capturing.graph = self

    def capture_end(self) -> None:
        """Ends the recording.

        Raises:
            RuntimeError: this graph is not being captured in this thread.
        """
        if self._recorder is None or getattr(_capturing, "graph", None) is not self:
            raise RuntimeError("hccl_torch_hpu: HPUGraph.capture_end: no capture is under way; call capture_begin() "
                               "first")
        recorder, self._recorder, _capturing.graph = self._recorder, None, None
        recorder.__exit__(None, None, None)
        recorder.restore()
        self._operations = [one for one in recorder.operations if one.is_needed]
        metrics.count_capture()

    def replay(self, asynchronous: bool = False) -> None:
        """Executes the recorded operations again on the recorded tensors, with their current values. Blocks until they
        have ended, even if ``asynchronous`` is True. Does not change autograd's version counters.

        Raises:
            RuntimeError: nothing was captured, or an output has a different shape than in the recording.
        """
        if self._operations is None:
            raise RuntimeError("hccl_torch_hpu: HPUGraph.replay: nothing was captured; call capture_begin() and "
                               "capture_end() first")
        metrics.count_replay()
        with torch.inference_mode(False), torch._C._ExcludeDispatchKeyGuard(_keys_above_recording()):
            for operation in self._operations:
                operation.replay()

    def mark_user_inputs(self, static_tlist: list[torch.Tensor]) -> None:
        """Sets the tensors that ``replayV3`` fills."""
        self._inputs = list(static_tlist)

    def mark_user_outputs(self, static_tlist: list[torch.Tensor]) -> None:
        """Does nothing, because all outputs of a recording are kept."""

    def get_user_input_match_indices(self) -> list[int]:
        """Returns the positions of all marked inputs."""
        return list(range(len(self._inputs)))

    def replayV2(self, static_tlist: list[torch.Tensor], tlist: list[torch.Tensor], asynchronous: bool = False) -> None:
        """Copies the tensors of ``tlist`` into those of ``static_tlist``, then replays."""
        with torch.no_grad():
            for static, given in zip(static_tlist, tlist):
                static.copy_(given)
        self.replay(asynchronous)

    def replayV3(self, tlistI: list[torch.Tensor], asynchronous: bool = False) -> None:
        """Copies the tensors of ``tlistI`` into the marked inputs, then replays."""
        self.replayV2(self._inputs, tlistI, asynchronous)

    def clear_inputs(self) -> None:
        """Clears the marked inputs."""
        self._inputs = []

    def reset(self) -> None:
        """Drops the recording, which releases its tensors."""
        self._operations = None
        self._inputs = []

    def pool(self) -> Any:
        """Returns the handle to pass to another graph's ``capture_begin(pool=...)``."""
        return self._pool

    def debug_dump(self, debug_path: str) -> None:
        """Writes the names of the recorded operations to a file, one per line."""
        with open(debug_path, "w", encoding="utf-8") as file:
            file.writelines(f"{one.function}\n" for one in self._operations or ())


class graph:  # noqa: N801 (named as in torch.cuda)
    """A context in which operations are recorded into ``hpu_graph``, like ``torch.cuda.graph``.

    Args:
        hpu_graph: the graph that stores the recording.
        stream: the current stream in the context; unchanged if it is None.
        dry_run: see ``HPUGraph.capture_begin``.
        pool: see ``HPUGraph.capture_begin``.
        capture_error_mode: accepted and ignored; a capture affects only the calling thread.
    """

    default_capture_stream = None

    def __init__(self, hpu_graph: HPUGraph, stream: Any = None, dry_run: bool = False, pool: Any = None,
                 capture_error_mode: str = "thread_local") -> None:
        self.hpu_graph = hpu_graph
        self.dry_run = dry_run
        self._pool = pool
        self._stream = torch.hpu.stream(stream) if stream is not None else None

    def __enter__(self) -> graph:
        gc.collect()
        if self._stream is not None:
            self._stream.__enter__()
        try:
            self.hpu_graph.capture_begin(self.dry_run, self._pool)
        except BaseException:
            self._leave_stream()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            self.hpu_graph.capture_end()
        finally:
            self._leave_stream()

    def _leave_stream(self) -> None:
        if self._stream is not None:
            self._stream.__exit__(None, None, None)


def graph_pool_handle() -> tuple[int, int]:
    """Returns a handle that several graphs can use. The handle has no effect, because recordings do not share
    memory."""
    return next(_pools), 0


def is_current_stream_capturing() -> bool:
    """Returns True between ``capture_begin`` and ``capture_end`` of a graph, in the thread that made these calls and
    in the backward passes that this thread starts."""
    return any(isinstance(mode, _Recorder) for mode in _get_current_dispatch_mode_stack())
