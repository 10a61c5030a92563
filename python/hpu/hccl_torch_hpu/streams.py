# SPDX-License-Identifier: Apache-2.0
"""Streams and events of the emulated device. Operations run when they are called. Streams order only work that the
program queues through the library's C interface, such as collectives and copies."""
from __future__ import annotations

import time
from typing import Any

import torch

from hccl_torch_hpu import _C


class Stream(torch.Stream):
    """A stream of the device. ``hpu_stream`` is the address of the library's stream."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any):
        if kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, device="hpu", priority=priority)

    @property
    def hpu_stream(self) -> int:
        return self.native_handle

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event after the queued work and returns the event. Creates one if ``event`` is None."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: torch.Event) -> None:
        """Blocks the caller until the event is complete."""
        event.wait(self)

    def wait_stream(self, stream: torch.Stream) -> None:
        """Blocks the caller until the work queued on ``stream`` has ended."""
        stream.synchronize()


class Event(torch.Event):
    """An event of the device. ``elapsed_time(end)`` returns milliseconds."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **kwargs: Any):
        if interprocess:
            raise NotImplementedError("hccl_torch_hpu: events are not shared between processes; use a barrier")
        return super().__new__(cls, device="hpu", enable_timing=enable_timing, blocking=blocking)

    def record(self, stream: torch.Stream | None = None) -> None:
        """Records the event after the work queued on ``stream``, or on the current stream if it is None."""
        super().record(stream or current_stream())
        self._recorded = time.perf_counter_ns()

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds between the calls that recorded the two events.

        Raises:
            RuntimeError: one of the events has not been recorded.
        """
        if not (hasattr(self, "_recorded") and hasattr(end_event, "_recorded")):
            raise RuntimeError("Both events must be device events that have been recorded")
        return (end_event._recorded - self._recorded) / 1e6


def _typed(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Any = None) -> Stream:
    """Returns the calling thread's current stream."""
    return _typed(torch.accelerator.current_stream())


def default_stream(device: Any = None) -> Stream:
    """Returns the device's default stream."""
    current = torch.accelerator.current_stream()
    return Stream(stream_id=0, device_index=0, device_type=current.device_type)


def set_stream(stream: torch.Stream) -> None:
    """Makes ``stream`` the calling thread's current stream."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """A context in which ``stream`` is the current stream. Has no effect if it is None."""

    def __init__(self, stream: torch.Stream | None):
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self._before = current_stream()
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            set_stream(self._before)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Returns a context in which ``stream`` is the current one."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Blocks until everything queued on the device, including collectives, has ended."""
    _C.synchronize()
