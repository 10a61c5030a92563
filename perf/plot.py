#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the JSON file of an hccl-perf or ddp_trainer run (--json) as an SVG.

    perf/plot.py RUN.json PLOT.svg

A plot of hccl-perf shows bus bandwidth and time per call against message size: solid lines out of place, dashed lines
in place. A plot of ddp_trainer shows the losses of each epoch, and its time and exposed communication per step."""
import collections
import json
import statistics
import sys

from charts import Axes, dot, line, page, polyline, short_size, text

PANEL = (430, 300)
MARGINS = (60, 12, 30, 30)
# Colours that people with colour vision deficiencies can distinguish on white.
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7b4ea3", "#b8860b", "#56a4d6", "#4a4a4a"]
MOST_TOGETHER = 4  # up to this many lines per placement share a pair of panels
DECADES = [10.0 ** power for power in range(-7, 13)]
TICKS = [digit * decade for decade in DECADES for digit in (1, 2, 5)]


def short_time(nanoseconds):
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= size:
            return f"{nanoseconds / size:g} {unit}"
    return f"{nanoseconds:g} ns"


def panel(title, lines, name_place, name_value, counted=False):
    """Returns a panel with `lines`, tuples (color, dashed, [(place, value)]). Omits points whose place
    or value is not positive."""
    lines = [(color, dashed, [point for point in points if min(point) > 0]) for color, dashed, points in lines]
    places = sorted({place for _, _, points in lines for place, _ in points})
    values = [value for _, _, points in lines for _, value in points] or [1]
    ticks = TICKS if max(values) < 50 * min(values) else DECADES
    axes = Axes(PANEL, MARGINS, places, values, ticks, counted)
    parts = [text(MARGINS[0], 20, title, 12, weight="bold"), *axes.draw(places, name_place, name_value, gap=38)]
    for color, dashed, points in lines:
        at = [(axes.x(place), axes.y(value)) for place, value in points]
        parts.append(polyline(at, color, "5 3" if dashed else ""))
        parts += [dot(x, y, color, f"{name_place(place)}: {name_value(value)}", not dashed)
                  for (x, y), (place, value) in zip(at, points)]
    return parts


def legend(entries, y):
    """Returns a legend for `entries`, tuples of (color, dashed, label)."""
    parts, x = [], 14
    for color, dashed, label in entries:
        parts += [line(x, y, x + 30, y, color, 1.8, "5 3" if dashed else ""), dot(x + 15, y, color, filled=not dashed),
                  text(x + 36, y + 4, label)]
        x += 60 + 6.6 * len(label)
    return parts


def draw(title, subtitle, panels, entries):
    header = [text(12, 24, title, 15, weight="bold"), text(12, 42, subtitle)]
    for number, group in enumerate(entries):
        header += legend(group, 62 + 18 * number)
    return page(panels, PANEL, 2, header, 60 + 18 * len(entries))


def case_of(row):
    """Returns a row's type, reduction and root as strings. The reduction or root is empty if the collective has
    none."""
    redop = row["redop"] if row["redop"] != "none" else ""
    return row["type"], redop, f"root {row['root']}" if row["root"] >= 0 else ""


def curves_of(rows, value):
    """Returns {(case, placement): [(size, median over the cycles)]}."""
    cells = {}
    for row in rows:
        for placement in ("out_of_place", "in_place"):
            if row[placement]:
                sizes = cells.setdefault((case_of(row), placement), {})
                sizes.setdefault(row["size_bytes"], []).append(row[placement][value])
    return {key: [(size, statistics.median(values)) for size, values in sorted(sizes.items())]
            for key, sizes in cells.items()}


def draw_sweep(run):
    cases = list(dict.fromkeys(case_of(row) for row in run["rows"]))
    varies = [len({case[part] for case in cases}) > 1 for part in range(3)]

    def name(case, shown):
        return ", ".join(part for part, wanted in zip(case, shown) if part and wanted)

    # Up to MOST_TOGETHER lines per placement share a pair of panels. If there are more, they are
    # divided by type, then by reduction, and then by root, until no pair has more lines than there
    # are colours.
    facet, most = [False] * 3, MOST_TOGETHER
    for part in range(3):
        if max(collections.Counter(name(case, facet) for case in cases).values()) > most and varies[part]:
            facet[part], most = True, len(COLORS)
    own = [one and not two for one, two in zip(varies, facet)]
    labels = list(dict.fromkeys(name(case, own) for case in cases))

    def color_of(case, placement):
        number = labels.index(name(case, own)) if len(labels) > 1 else placement == "in_place"
        return COLORS[number % len(COLORS)]

    panels = []
    for shown in dict.fromkeys(name(case, facet) for case in cases):
        for title, value, label in (("Bus bandwidth (GB/s)", "busbw_gb_per_s", "{:g}".format),
                                    ("Time per call", "time_ns", short_time)):
            curves = curves_of([row for row in run["rows"] if name(case_of(row), facet) == shown], value)
            lines = [(color_of(*key), key[1] == "in_place", points) for key, points in curves.items()]
            panels.append(panel(f"{title}, {shown}" if shown else title, lines, short_size, label))

    placements = [(COLORS[0], False, "out of place")]
    if any(row["in_place"] for row in run["rows"]):
        placements.append((COLORS[len(labels) == 1], True, "in place"))
    entries = [placements] + ([[(COLORS[at % len(COLORS)], False, label) for at, label in enumerate(labels)]]
                              if len(labels) > 1 else [])
    host = run["host"]
    fixed = name(cases[0], [not one for one in varies])
    facts = [fixed, f"{host['name']}, {host['cores']} cores ({host['cpu']})", run["started"],
             f"hccl-perf {run['version']}"]
    return draw(f"{run['collective']}, {run['ranks']} ranks", "  ·  ".join(filter(None, facts)), panels, entries)


def draw_training(run):
    def curve(field):
        return [(epoch["epoch"], epoch[field]) for epoch in run["epochs"]]

    losses = [(COLORS[0], False, curve("loss")), (COLORS[1], True, curve("test_loss"))]
    times = [(COLORS[2], False, curve("step_ms")), (COLORS[3], True, curve("communication_ms"))]
    panels = [panel("Loss over the epochs", losses, "{:g}".format, "{:.3g}".format, counted=True),
              panel("Milliseconds per step", times, "{:g}".format, "{:.3g}".format, counted=True)]
    labels = ["training loss", "test loss", "time per step", "exposed communication per step"]
    entries = [(color, dashed, label) for (color, dashed, _), label in zip(losses + times, labels)]
    return draw(f"ddp_trainer: {run['mode']}, {run['ranks']} ranks", run["training"], panels, [entries[:2], entries[2:]])


def picture_of(run):
    """Returns the SVG of a run. Raises ValueError if the run has neither epochs nor sizes."""
    if "epochs" in run:
        return draw_training(run)
    if not any(row["size_bytes"] for row in run.get("rows", [])):
        raise ValueError("the file has neither epochs nor sizes to draw")
    return draw_sweep(run)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot.py RUN.json PLOT.svg")
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            picture = picture_of(json.load(file))
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(picture)
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
