#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One SVG of a run: a panel for each collective and number of ranks, hccl's time relative to the others' over the size.

    perf/peers/plot.py RUN.json PLOT.svg    # from what bench.py --json has written"""
import json
import math
import os
import sys
from html import escape

COLUMNS = 4
PANEL_WIDTH, PANEL_HEIGHT = 250, 190
LEFT, RIGHT, TOP, BOTTOM = 36, 12, 26, 24  # of a panel, around its axes
HEADER = 66
TICKS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
TICK_GAP = 34  # pixels between the labels of two sizes
BEST, FLOOR, SLOWER, INK, GRID = "#1f5fbf", "#b8651b", "#c8102e", "#222222", "#dddddd"
SERIES = [("best", BEST, ""), ("floor", FLOOR, "5 3")]


def short_size(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size >= 1 << shift:
            return f"{size >> shift}{unit}"
    return str(size)


def text(x, y, content, size=11, anchor="start", color=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def line(x1, y1, x2, y2, color, width=1.0, dash=""):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
            f'stroke-width="{width}"{dashed}/>')


def marker(name, x, y, color, hint=""):
    title = f"<title>{escape(hint)}</title>" if hint else ""
    if name == "best":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{color}">{title}</circle>'
    return f'<rect x="{x - 2.8:.1f}" y="{y - 2.8:.1f}" width="5.6" height="5.6" fill="{color}">{title}</rect>'


class Axes:
    """Where a size and a ratio lie in a panel; the same scales in all of them."""

    def __init__(self, cells):
        sizes = [math.log2(cell.size) for cell in cells if cell.size > 0] or [0.0]
        ratios = [ratio for cell in cells for ratio in (ratio_of(cell, "best"), ratio_of(cell, "floor")) if ratio]
        self.first, self.last = min(sizes), max(max(sizes), min(sizes) + 1)
        self.low = max([tick for tick in TICKS if tick <= min(ratios + [0.5])], default=TICKS[0])
        self.high = min([tick for tick in TICKS if tick >= max(ratios + [2])], default=TICKS[-1])

    def x(self, size):
        room = PANEL_WIDTH - LEFT - RIGHT - 16
        share = (math.log2(size) - self.first) / (self.last - self.first) if size > 0 else 0.5
        return LEFT + 8 + room * share

    def y(self, ratio):
        inside = min(max(ratio, self.low), self.high)
        return TOP + (PANEL_HEIGHT - TOP - BOTTOM) * math.log(self.high / inside) / math.log(self.high / self.low)


def ratio_of(cell, name):
    return cell.ratio_to(cell.best[1] if name == "best" else cell.floor[1])


def show_axes(axes, cells):
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    parts = [f'<rect x="{LEFT}" y="{axes.y(1):.1f}" width="{right - LEFT}" height="{bottom - axes.y(1):.1f}" '
             'fill="#eef6ee"/>']
    for tick in TICKS:
        if axes.low <= tick <= axes.high:
            parts.append(line(LEFT, axes.y(tick), right, axes.y(tick), INK if tick == 1 else GRID,
                              1.4 if tick == 1 else 0.8))
            parts.append(text(LEFT - 5, axes.y(tick) + 3.5, f"{tick:g}", 10, "end",
                              weight="bold" if tick == 1 else "normal"))
    labelled = -math.inf
    for cell in cells:
        x = axes.x(cell.size)
        parts.append(line(x, bottom, x, bottom + 3, INK, 0.8))
        if x - labelled >= TICK_GAP:
            parts.append(text(x, bottom + 14, short_size(cell.size) if cell.size else "no size", 10, "middle"))
            labelled = x
    return parts


def show_series(axes, cells, name, color, dash):
    """Ratios to the best that are above 1 stand out: there slower than Open MPI."""
    points = [(axes.x(cell.size), axes.y(ratio), cell.size, ratio) for cell in cells if (ratio := ratio_of(cell, name))]
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    parts = [f'<polyline points="{way}" fill="none" stroke="{color}" stroke-width="1.8"{dashed}/>']
    for x, y, size, ratio in points:
        shade = SLOWER if name == "best" and ratio > 1 else color
        parts.append(marker(name, x, y, shade, f"{short_size(size)}: {ratio:.2f} of {name}"))
    return parts


def show_panel(axes, cells):
    first = cells[0]
    parts = [text(LEFT, TOP - 9, f"{first.collective}, {first.ranks} ranks", 12, weight="bold")]
    parts += show_axes(axes, cells)
    for series in SERIES:
        parts += show_series(axes, cells, *series)
    return parts


def show_header(width):
    names = {"best": "time relative to Open MPI's best setting", "floor": "relative to the memory floor"}
    parts = [text(12, 22, "hccl's time relative to others: lower is better", 15, weight="bold")]
    x, y = 14, 42
    for name, color, dash in SERIES:
        parts += [line(x, y, x + 26, y, color, 1.8, dash), marker(name, x + 13, y, color),
                  text(x + 32, y + 4, names[name])]
        x += 290 if name == "best" else 210
    if width < 2 * PANEL_WIDTH + 250:
        x, y = 14, y + 18
    parts += [marker("best", x, y, SLOWER), text(x + 8, y + 4, "slower than Open MPI"),
              f'<rect x="{x + 150}" y="{y - 6}" width="22" height="12" fill="#eef6ee" stroke="{GRID}"/>',
              text(x + 178, y + 4, "below 1: hccl is faster")]
    return parts


def axes_of(panels):
    return Axes([cell for cells in panels for cell in cells])


def draw(panels, axes):
    """The SVG of a list of panels, each a list of cells (measure.Cell) of one collective and number of ranks."""
    columns = max(2, min(COLUMNS, len(panels)))
    width = columns * PANEL_WIDTH + 8
    height = HEADER + math.ceil(len(panels) / columns) * PANEL_HEIGHT + 6
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *show_header(width)]
    for number, cells in enumerate(panels):
        row, column = divmod(number, columns)
        parts.append(f'<g transform="translate({column * PANEL_WIDTH},{HEADER + row * PANEL_HEIGHT})">')
        parts += show_panel(axes, cells) + ["</g>"]
    return "\n".join(parts + ["</svg>"]) + "\n"


def glance(panels):
    """The first row of panels with the most ranks: enough for the head of a page."""
    most = max((cells[0].ranks for cells in panels), default=0)
    return [cells for cells in panels if cells[0].ranks == most][:COLUMNS]


def glance_path(path):
    """Where the picture of the glance is: plot.svg has it in plot-glance.svg."""
    root, extension = os.path.splitext(path)
    return f"{root}-glance{extension}"


def write_plot(path, sections):
    """`sections`: (name, cells) pairs, of which those named "queued" are drawn. A second picture, at glance_path(), has a
    single row."""
    panels = [cells for name, cells in sections if name == "queued" and any(cell.best[1] for cell in cells)]
    axes = axes_of(panels)
    for target, drawn in ((path, panels), (glance_path(path), glance(panels))):
        with open(target, "w", encoding="utf-8") as file:
            file.write(draw(drawn, axes))


def main():
    from measure import Cell
    if len(sys.argv) != 3:
        sys.exit("usage: plot.py RUN.json PLOT.svg")
    with open(sys.argv[1], encoding="utf-8") as file:
        run = json.load(file)
    write_plot(sys.argv[2], [(part["section"], [Cell.from_json(cell) for cell in part["cells"]])
                             for part in run["sections"]])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
