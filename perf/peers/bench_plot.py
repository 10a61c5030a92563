#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a run as one SVG: a panel for each collective and number of ranks. A panel shows hccl's time relative to the
fastest peer and to the memory floor, by size.

    perf/peers/bench_plot.py RUN.json PLOT.svg    # RUN.json is written by bench.py --json"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from charts import GRID, Axes, dot, line, page, polyline, short_size, text

COLUMNS = 4
PANEL = PANEL_WIDTH, PANEL_HEIGHT = 250, 190
MARGINS = LEFT, _, TOP, _ = 36, 12, 26, 24
HEADER = 66
TICKS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
BEST, FLOOR, SLOWER, FASTER = "#1f5fbf", "#b8651b", "#c8102e", "#eef6ee"
SERIES = [("best", BEST, ""), ("floor", FLOOR, "5 3")]


def marker(name, x, y, color, hint=""):
    if name == "best":
        return dot(x, y, color, hint)
    title = f"<title>{hint}</title>" if hint else ""
    return f'<rect x="{x - 2.8:.1f}" y="{y - 2.8:.1f}" width="5.6" height="5.6" fill="{color}">{title}</rect>'


def ratio_of(cell, name):
    return cell.ratio_to(cell.best[1] if name == "best" else cell.floor[1])


def axes_of(panels):
    """Returns axes with the same scales for all panels."""
    cells = [cell for cells in panels for cell in cells]
    ratios = [ratio for cell in cells for name in ("best", "floor") if (ratio := ratio_of(cell, name))]
    return Axes(PANEL, MARGINS, [cell.size for cell in cells if cell.size > 0], ratios + [0.5, 2], TICKS)


def show_series(axes, cells, name, color, dash):
    """Returns the line of hccl's time relative to `name` ("best" or "floor"). On the line of "best", points at which
    hccl is slower have a different colour."""
    points = [(axes.x(cell.size), axes.y(ratio), cell.size, ratio) for cell in cells if (ratio := ratio_of(cell, name))]
    parts = [polyline([point[:2] for point in points], color, dash)]
    for x, y, size, ratio in points:
        shade = SLOWER if name == "best" and ratio > 1 else color
        parts.append(marker(name, x, y, shade, f"{short_size(size)}: {ratio:.2f} of {name}"))
    return parts


def show_panel(axes, cells):
    first = cells[0]
    parts = [text(LEFT, TOP - 9, f"{first.collective}, {first.ranks} ranks", 12, weight="bold"),
             f'<rect x="{LEFT}" y="{axes.y(1):.1f}" width="{axes.right - LEFT}" height="{axes.bottom - axes.y(1):.1f}" '
             f'fill="{FASTER}"/>',
             *axes.draw([cell.size for cell in cells], lambda size: short_size(size) if size else "no size", stressed=1)]
    for series in SERIES:
        parts += show_series(axes, cells, *series)
    return parts


def show_header(width):
    names = {"best": "time relative to the fastest peer", "floor": "relative to the memory floor"}
    parts = [text(12, 22, "hccl's time relative to others: lower is better", 15, weight="bold")]
    x, y = 14, 42
    for name, color, dash in SERIES:
        parts += [line(x, y, x + 26, y, color, 1.8, dash), marker(name, x + 13, y, color),
                  text(x + 32, y + 4, names[name])]
        x += 290 if name == "best" else 210
    if width < 2 * PANEL_WIDTH + 250:
        x, y = 14, y + 18
    return parts + [marker("best", x, y, SLOWER), text(x + 8, y + 4, "slower than a peer"),
                    f'<rect x="{x + 150}" y="{y - 6}" width="22" height="12" fill="{FASTER}" stroke="{GRID}"/>',
                    text(x + 178, y + 4, "below 1: hccl is faster")]


def draw(panels, axes):
    """Returns the SVG of `panels`. A panel is the list of the cells (measure.Cell) of one collective and one number of
    ranks."""
    columns = max(2, min(COLUMNS, len(panels)))
    header = show_header(columns * PANEL_WIDTH + 8)
    return page([show_panel(axes, cells) for cells in panels], PANEL, columns, header, HEADER)


def glance(panels):
    """Returns the panels with the most ranks, but at most one row of them."""
    most = max((cells[0].ranks for cells in panels), default=0)
    return [cells for cells in panels if cells[0].ranks == most][:COLUMNS]


def glance_path(path):
    """Returns the path of the short version of a picture: plot-glance.svg for plot.svg."""
    root, extension = os.path.splitext(path)
    return f"{root}-glance{extension}"


def write_plot(path, sections):
    """Draws the sections named "queued". `sections` is a list of (name, cells). Also writes a picture of a single row to
    glance_path(path)."""
    panels = [cells for name, cells in sections if name == "queued" and any(cell.best[1] for cell in cells)]
    axes = axes_of(panels)
    for target, drawn in ((path, panels), (glance_path(path), glance(panels))):
        with open(target, "w", encoding="utf-8") as file:
            file.write(draw(drawn, axes))


def main():
    from measure import Cell
    if len(sys.argv) != 3:
        sys.exit("usage: bench_plot.py RUN.json PLOT.svg")
    with open(sys.argv[1], encoding="utf-8") as file:
        run = json.load(file)
    write_plot(sys.argv[2], [(part["section"], [Cell.from_json(cell) for cell in part["cells"]])
                             for part in run["sections"]])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
