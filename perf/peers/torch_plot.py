# SPDX-License-Identifier: Apache-2.0
"""One SVG of a comparison of PyTorch's backends: how many times as fast as gloo hccl is, over the size. A panel for each
number of ranks, in which each collective has a line for plain tensors and one for tensors in shared memory."""
import math
import statistics
from html import escape

from plot import GRID, INK, line, short_size, text

PANEL_WIDTH, PANEL_HEIGHT = 330, 330
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 30, 28  # of a panel, around its axes
HEADER = 92
TICK_GAP = 28  # pixels between the labels of two sizes
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
FASTER, PAPER = "#eef6ee", "#ffffff"
# Legible on light and on dark paper.
COLORS = ["#3a7fd0", "#d9730d", "#2a9d5c", "#c74b8f", "#8b6fd6", "#8a8a2a"]
KINDS = {"bucket": ("tensor in shared memory", ""), "plain": ("plain tensor", "5 3")}
# Viewers that prefer a dark page get the same picture on dark paper.
STYLE = (f'<style>@media (prefers-color-scheme: dark) {{ rect[fill="{PAPER}"] {{ fill: #0d1117 }} '
         f'rect[fill="{FASTER}"] {{ fill: #15251b }} text[fill="{INK}"] {{ fill: #dddddd }} '
         f'line[stroke="{INK}"] {{ stroke: #bbbbbb }} line[stroke="{GRID}"] {{ stroke: #333b44 }} }}</style>')


def cells_of(samples):
    """The times in microseconds by (collective, ranks, size) and side, a list over the rounds."""
    cells = {}
    for one in samples:
        cell = cells.setdefault((one["collective"], one["ranks"], one["size"]), {})
        cell.setdefault(one["side"], []).append(one["us"])
    return cells


def median_ratio(cell, side):
    """How many times faster than gloo: the median of the ratios within a round."""
    return statistics.median(gloo / own for gloo, own in zip(cell["gloo"], cell[side]))


class Axes:
    """Where a size and a ratio lie in a panel, both on logarithmic scales: the same in all panels."""

    def __init__(self, cells):
        self.sizes = sorted({size for _, _, size in cells})
        ratios = [median_ratio(cell, kind) for cell in cells.values() for kind in KINDS]
        self.low = max([tick for tick in TICKS if tick <= min(ratios + [1])], default=TICKS[0])
        self.high = min([tick for tick in TICKS if tick >= max(ratios + [2])], default=TICKS[-1])

    def x(self, size):
        first, last = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        room = PANEL_WIDTH - LEFT - RIGHT - 24
        return LEFT + 12 + (room * (math.log2(size) - first) / (last - first) if last > first else room / 2)

    def y(self, ratio):
        inside = min(max(ratio, self.low), self.high)
        return TOP + (PANEL_HEIGHT - TOP - BOTTOM) * math.log(self.high / inside) / math.log(self.high / self.low)


def marker(kind, x, y, color, hint=""):
    title = f"<title>{escape(hint)}</title>" if hint else ""
    fill = color if kind == "bucket" else "none"
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{fill}" stroke="{color}" stroke-width="1.4">{title}'
            '</circle>')


def show_axes(axes):
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{axes.y(1) - TOP:.1f}" fill="{FASTER}"/>']
    for tick in TICKS:
        if axes.low <= tick <= axes.high:
            same = tick == 1
            parts.append(line(LEFT, axes.y(tick), right, axes.y(tick), INK if same else GRID, 1.4 if same else 0.8))
            parts.append(text(LEFT - 6, axes.y(tick) + 3.5, f"{tick:g}", 10, "end", weight="bold" if same else "normal"))
    labelled = -math.inf
    for size in axes.sizes:
        x = axes.x(size)
        parts.append(line(x, bottom, x, bottom + 3, INK, 0.8))
        if x - labelled >= TICK_GAP:
            parts.append(text(x, bottom + 15, short_size(size), 10, "middle"))
            labelled = x
    return parts


def show_line(axes, cells, collective, ranks, kind, color):
    points = [(size, median_ratio(cell, kind)) for (name, count, size), cell in sorted(cells.items())
              if (name, count) == (collective, ranks)]
    way = " ".join(f"{axes.x(size):.1f},{axes.y(ratio):.1f}" for size, ratio in points)
    dash = KINDS[kind][1]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    parts = [f'<polyline points="{way}" fill="none" stroke="{color}" stroke-width="1.8"{dashed}/>']
    for size, ratio in points:
        hint = f"{collective}, {KINDS[kind][0]}, {short_size(size)}: {ratio:.3g} times as fast as gloo"
        parts.append(marker(kind, axes.x(size), axes.y(ratio), color, hint))
    return parts


def show_header(colors):
    parts = [text(12, 24, "PyTorch on CPUs: hccl's speed-up over gloo (higher is better)", 15, weight="bold")]
    x = 14
    for collective, color in colors.items():
        parts += [line(x, 46, x + 22, 46, color, 3), text(x + 28, 50, collective, 12)]
        x += 48 + 7.2 * len(collective)
    x = 14
    for kind, (name, dash) in KINDS.items():
        parts += [line(x, 70, x + 34, 70, INK, 1.8, dash), marker(kind, x + 17, 70, COLORS[0]),
                  text(x + 42, 74, name, 12)]
        x += 74 + 7 * len(name)
    return parts + [f'<rect x="{x}" y="63" width="22" height="13" fill="{FASTER}" stroke="{GRID}"/>',
                    text(x + 28, 74, "faster than gloo", 12)]


def draw(cells):
    """The SVG of what cells_of() returns."""
    axes = Axes(cells)
    colors = {name: COLORS[at % len(COLORS)] for at, name in enumerate(dict.fromkeys(name for name, _, _ in cells))}
    panels = sorted({ranks for _, ranks, _ in cells})
    width, height = max(2, len(panels)) * PANEL_WIDTH + 8, HEADER + PANEL_HEIGHT + 22
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif">', STYLE,
             f'<rect width="{width}" height="{height}" fill="{PAPER}"/>', *show_header(colors)]
    for column, ranks in enumerate(panels):
        parts.append(f'<g transform="translate({column * PANEL_WIDTH},{HEADER})">')
        parts += [text(LEFT, TOP - 10, f"{ranks} ranks", 13, weight="bold"), *show_axes(axes)]
        for collective, color in colors.items():
            for kind in reversed(KINDS):
                parts += show_line(axes, cells, collective, ranks, kind, color)
        parts.append("</g>")
    parts.append(text(12, height - 10, "bytes of the tensor on each rank; times as fast as gloo", 11))
    return "\n".join(parts + ["</svg>"]) + "\n"


def write_plot(path, samples):
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(cells_of(samples)))
