# SPDX-License-Identifier: Apache-2.0
"""Draws a comparison of the PyTorch backends as one SVG: hccl's speed-up over gloo by size, in a panel for each number of
ranks. Each collective has a line for plain tensors and one for tensors in shared memory."""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from charts import GRID, INK, PAPER, Axes, dot, line, page, polyline, short_size, text

PANEL = 330, 330
MARGINS = LEFT, _, TOP, _ = 44, 14, 30, 28
HEADER = 92
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
FASTER = "#eef6ee"
# These colours are legible on light and dark backgrounds.
COLORS = ["#3a7fd0", "#d9730d", "#2a9d5c", "#c74b8f", "#8b6fd6", "#8a8a2a"]
KINDS = {"bucket": ("tensor in shared memory", ""), "plain": ("plain tensor", "5 3")}
# Gives viewers that prefer a dark page the same picture on a dark background.
STYLE = (f'<style>@media (prefers-color-scheme: dark) {{ rect[fill="{PAPER}"] {{ fill: #0d1117 }} '
         f'rect[fill="{FASTER}"] {{ fill: #15251b }} text[fill="{INK}"] {{ fill: #dddddd }} '
         f'line[stroke="{INK}"] {{ stroke: #bbbbbb }} line[stroke="{GRID}"] {{ stroke: #333b44 }} }}</style>')


def cells_of(samples):
    """Returns {(collective, ranks, size): {side: [microseconds in each round]}}."""
    cells = {}
    for one in samples:
        cell = cells.setdefault((one["collective"], one["ranks"], one["size"]), {})
        cell.setdefault(one["side"], []).append(one["us"])
    return cells


def median_ratio(cell, side):
    """Returns the speed-up over gloo: the median of the ratios of samples from the same round."""
    return statistics.median(gloo / own for gloo, own in zip(cell["gloo"], cell[side]))


def axes_of(cells):
    """Returns axes with the same scales for all panels."""
    ratios = [median_ratio(cell, kind) for cell in cells.values() for kind in KINDS]
    return Axes(PANEL, MARGINS, [size for _, _, size in cells], ratios + [1, 2], TICKS)


def show_line(axes, cells, collective, ranks, kind, color):
    points = [(size, median_ratio(cell, kind)) for (name, count, size), cell in sorted(cells.items())
              if (name, count) == (collective, ranks)]
    parts = [polyline([(axes.x(size), axes.y(ratio)) for size, ratio in points], color, KINDS[kind][1])]
    for size, ratio in points:
        hint = f"{collective}, {KINDS[kind][0]}, {short_size(size)}: {ratio:.3g} times as fast as gloo"
        parts.append(dot(axes.x(size), axes.y(ratio), color, hint, kind == "bucket"))
    return parts


def show_panel(axes, cells, ranks, colors):
    parts = [text(LEFT, TOP - 10, f"{ranks} ranks", 13, weight="bold"),
             f'<rect x="{LEFT}" y="{TOP}" width="{axes.right - LEFT}" height="{axes.y(1) - TOP:.1f}" fill="{FASTER}"/>',
             *axes.draw(sorted({size for _, _, size in cells}), short_size, stressed=1)]
    for collective, color in colors.items():
        for kind in reversed(KINDS):
            parts += show_line(axes, cells, collective, ranks, kind, color)
    return parts


def show_header(colors):
    parts = [text(12, 24, "PyTorch on CPUs: hccl's speed-up over gloo (higher is better)", 15, weight="bold")]
    x = 14
    for collective, color in colors.items():
        parts += [line(x, 46, x + 22, 46, color, 3), text(x + 28, 50, collective, 12)]
        x += 48 + 7.2 * len(collective)
    x = 14
    for kind, (name, dash) in KINDS.items():
        parts += [line(x, 70, x + 34, 70, INK, 1.8, dash), dot(x + 17, 70, COLORS[0], filled=kind == "bucket"),
                  text(x + 42, 74, name, 12)]
        x += 74 + 7 * len(name)
    return parts + [f'<rect x="{x}" y="63" width="22" height="13" fill="{FASTER}" stroke="{GRID}"/>',
                    text(x + 28, 74, "faster than gloo", 12)]


def draw(cells):
    """Returns the SVG of `cells`, the result of cells_of()."""
    axes = axes_of(cells)
    colors = {name: COLORS[at % len(COLORS)] for at, name in enumerate(dict.fromkeys(name for name, _, _ in cells))}
    counts = sorted({ranks for _, ranks, _ in cells})
    panels = [show_panel(axes, cells, ranks, colors) for ranks in counts]
    return page(panels, PANEL, max(2, len(panels)), show_header(colors), HEADER,
                "horizontal: bytes of the tensor on each rank; vertical: how many times as fast as gloo", STYLE)


def write_plot(path, samples):
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(cells_of(samples)))
