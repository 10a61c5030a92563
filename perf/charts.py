# SPDX-License-Identifier: Apache-2.0
"""The building blocks of this project's charts: SVG elements, logarithmic axes, and panels in rows."""
import math
from html import escape

INK, GRID, PAPER = "#222222", "#dddddd", "#ffffff"


def short_size(size):
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
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


def polyline(points, color, dash=""):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{way}" fill="none" stroke="{color}" stroke-width="1.8"{dashed}/>'


def dot(x, y, color, hint="", filled=True):
    title = f"<title>{escape(hint)}</title>" if hint else ""
    look = f'fill="{color}"' if filled else f'fill="none" stroke="{color}" stroke-width="1.4"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" {look}>{title}</circle>'


class Axes:
    """Maps values to pixels in a panel. `panel` is (width, height), and `margins` are (left, right, above, below).
    The y axis is logarithmic, and shows only the `ticks` that are needed to enclose all `values`. The x axis shows
    `places` and is logarithmic unless `counted`."""

    def __init__(self, panel, margins, places, values, ticks, counted=False):
        width, height = panel
        self.left, right, self.top, bottom = margins
        self.right, self.bottom = width - right, height - bottom
        self.scale = float if counted else math.log2
        self.first = self.scale(min(places, default=1))
        self.last = self.scale(max(places, default=1))
        self.low = max((tick for tick in ticks if tick <= min(values)), default=ticks[0])
        self.high = min((tick for tick in ticks if tick >= max(values) and tick > self.low), default=ticks[-1])
        self.ticks = [tick for tick in ticks if self.low <= tick <= self.high]

    def x(self, place):
        share = 0.5
        if place > 0 and self.last > self.first:
            share = (self.scale(place) - self.first) / (self.last - self.first)
        return self.left + 10 + (self.right - self.left - 20) * share

    def y(self, value):
        inside = min(max(value, self.low), self.high)
        return self.top + (self.bottom - self.top) * math.log(self.high / inside) / math.log(self.high / self.low)

    def draw(self, places, name_place, name_tick="{:g}".format, stressed=None, gap=32):
        """Returns the grid and its labels. Omits a place's label if it would be closer than `gap` pixels to another
        label."""
        parts = []
        for tick in self.ticks:
            bold = tick == stressed
            parts += [line(self.left, self.y(tick), self.right, self.y(tick), INK if bold else GRID, 1.4 if bold else 0.8),
                      text(self.left - 5, self.y(tick) + 3.5, name_tick(tick), 10, "end",
                           weight="bold" if bold else "normal")]
        labelled = -math.inf
        for place in places:
            x = self.x(place)
            parts.append(line(x, self.bottom, x, self.bottom + 3, INK, 0.8))
            if x - labelled >= gap:
                parts.append(text(x, self.bottom + 14, name_place(place), 10, "middle"))
                labelled = x
        return parts


def page(panels, size, columns, header, header_height, footer="", style=""):
    """Returns an SVG of `panels`, in rows of `columns` panels below a header. A panel is a list of
    elements. `size` is the (width, height) of each panel."""
    width = columns * size[0] + 8
    height = header_height + -(-len(panels) // columns) * size[1] + (22 if footer else 6)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif">', style,
             f'<rect width="{width}" height="{height}" fill="{PAPER}"/>', *header]
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        parts += [f'<g transform="translate({column * size[0]},{header_height + row * size[1]})">', *panel, "</g>"]
    if footer:
        parts.append(text(12, height - 10, footer, 11))
    return "\n".join(part for part in parts + ["</svg>"] if part) + "\n"
