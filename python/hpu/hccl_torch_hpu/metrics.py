# SPDX-License-Identifier: Apache-2.0
"""The metrics of ``hpu.metrics``: global metrics count from the start of the process or the last reset, local ones
within a context."""
from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["MetricNotFound", "metric_global", "metric_localcontext", "metrics_dump"]

_lock = threading.Lock()

# The metrics, each with the names of the values in its statistics.
_COUNTS = {
    "graph_compilation": ("TotalNumber", "TotalTime", "AvgTime"),
    "recipe_cache": ("TotalHit", "TotalMiss", "RecipeHit", "RecipeMiss"),
    "cpu_fallback": ("TotalNumber", "FallbackOps"),
    "memory_defragmentation": ("TotalNumber", "TotalSuccessful", "AvgTime", "TotalTime"),
}
_TEXTS = ("FallbackOps",)


class MetricNotFound(Exception):
    """Raised for a metric that does not exist."""


class Metric:
    """Counts of one kind of event since the metric was created or reset."""

    def __init__(self, name: str) -> None:
        if name not in _COUNTS:
            raise MetricNotFound(f"no metric {name}; the metrics are {', '.join(sorted(_COUNTS))}")
        self._name = name
        self.reset()

    def name(self) -> str:
        """Returns the metric's name."""
        return self._name

    def stats(self) -> list[tuple[str, Any]]:
        """Returns the counts as pairs of a name and a value."""
        with _lock:
            return list(self._values.items())

    def reset(self) -> None:
        """Resets all counts."""
        self._values: dict[str, Any] = {one: "" if one in _TEXTS else 0 for one in _COUNTS[self._name]}

    def add(self, count: str) -> None:
        with _lock:
            self._values[count] += 1


_global = {name: Metric(name) for name in _COUNTS}
_local: list[Metric] = []


def metric_global(name: str) -> Metric:
    """Returns the metric that counts since the start of the process or its last reset.

    The emulation compiles nothing: "graph_compilation" counts captures of graphs, calls to the compile backend, and, in
    lazy mode, steps that differ from all earlier steps. "recipe_cache" counts these as misses, and replays and the
    other steps as hits. All operations count as the device's own, and memory is never moved, so "cpu_fallback" and
    "memory_defragmentation" stay 0.

    Raises:
        MetricNotFound: there is no metric of this name.
    """
    if name not in _global:
        raise MetricNotFound(f"no metric {name}; the metrics are {', '.join(sorted(_COUNTS))}")
    return _global[name]


@contextlib.contextmanager
def metric_localcontext(name: str) -> Iterator[Metric]:
    """Yields a metric that counts the events inside the context.

    Raises:
        MetricNotFound: there is no metric of this name.
    """
    metric = Metric(name)
    _local.append(metric)
    try:
        yield metric
    finally:
        _local.remove(metric)


def metrics_dump(file_name: str, format: str = "json") -> None:
    """Writes all global metrics to a file, as JSON or as lines of text.

    Raises:
        ValueError: the format is neither "json" nor "text".
    """
    if str(format) not in ("json", "text"):
        raise ValueError(f"metrics_dump: unknown format '{format}'; use json or text")
    values = {name: dict(metric.stats()) for name, metric in _global.items()}
    with open(file_name, "w", encoding="utf-8") as file:
        if str(format) == "json":
            json.dump([{"metric_name": name, "statistics": one} for name, one in values.items()], file, indent=1)
        else:
            file.writelines(f"{name}: {one}\n" for name, one in values.items())


def _count(name: str, count: str) -> None:
    for metric in [_global[name], *(one for one in _local if one.name() == name)]:
        metric.add(count)


def count_capture() -> None:
    """Counts a captured graph, or a function that was passed to the compile backend."""
    _count("graph_compilation", "TotalNumber")
    _count("recipe_cache", "TotalMiss")


def count_replay() -> None:
    """Counts a replay of a graph."""
    _count("recipe_cache", "TotalHit")


def count_step(is_new: bool) -> None:
    """Counts a step in lazy mode. The step counts as a graph to compile if no earlier step had its operations, shapes
    and types."""
    if is_new:
        count_capture()
    else:
        count_replay()
