# SPDX-License-Identifier: Apache-2.0
"""Formats a run in Markdown: facts about the machine, one table for each section, and the verdicts on the goals."""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from goals import goals_of
from page import machine_facts, output_of, show_run, table

TITLES = {
    "queued": "{collective}, {ranks} ranks: calls queued back to back",
    "host": "{collective}, {ranks} ranks: calls queued back to back on ordinary host memory",
    "busy": "{collective}, {ranks} ranks, alongside a busy loop pinned to one core",
    "latency": "{collective}, {ranks} ranks: synchronising after each call, compared with blocking calls",
    "nodes": "{collective}, {ranks} nodes with one rank each: calls queued back to back",
    "two_level": "{collective}, {ranks} ranks on {nodes} nodes: calls queued back to back",
    "nodes latency":
        "{collective}, {ranks} nodes with one rank each: synchronising after each call, compared with blocking calls",
}
FLOORS = {"nodes": "raw exchange", "nodes latency": "raw ping-pong", "two_level": "one rank per node"}  # the others use the memory floor

TIMES = ("Times are microseconds per call (medians over the rounds). Ratios are hccl's time divided by the other side's "
         "(medians of the ratios within a round).")


def name_of(section, what):
    """Returns the name of a ratio's denominator."""
    return FLOORS.get(section, what) if what == "floor" else what


def show_size(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def show_time(samples):
    """Returns the median in microseconds, rounded to an integer from 1000 on, and else to three significant digits."""
    if not samples:
        return ""
    micro = statistics.median(samples) / 1000
    return f"{micro:,.0f}" if micro >= 1000 else f"{micro:.3g}"


def show_ratio(ratio):
    return "" if ratio is None else f"{ratio:.2f}"


def ratios_of(cell):
    return {"best": cell.ratio_to(cell.best[1]), "default": cell.ratio_to(cell.default),
            "floor": cell.ratio_to(cell.floor[1]), "undisturbed": cell.ratio_to(cell.quiet)}


def judge(section, cell):
    """Returns [(what, ratio, must, aim, verdict)] for every goal of this cell whose ratio was measured."""
    ratios = ratios_of(cell)
    judged = []
    for what, must, aim in goals_of(section, cell):
        ratio = ratios[what]
        if ratio is None:
            continue
        if aim is not None and ratio <= aim:
            verdict = "aim"
        elif must is not None:
            verdict = "reached" if ratio <= must else "MISSED"
        else:
            verdict = "short of aim"
        judged.append((what, ratio, must, aim, verdict))
    return judged


def show_goals(section, cell):
    parts = []
    for what, _, must, aim, verdict in judge(section, cell):
        bounds = " / ".join("–" if bound is None else f"{bound:g}" for bound in (must, aim))
        parts.append(f"{name_of(section, what)} {bounds}: {verdict}")
    return "; ".join(parts)


def table_of(section, cells):
    """Returns a table of the cells. Omits columns that are empty in every row."""
    rows = []
    floor = name_of(section, "floor")
    # Across nodes, all settings are Open MPI's.
    peer, default = ("Open MPI best", "default") if section in FLOORS else ("fastest peer", "Open MPI 4 default")
    for cell in cells:
        ratios = ratios_of(cell)
        label, best = cell.best_of(cell.settings)
        gloo_label, gloo = cell.best_of(cell.gloo)
        rows.append({
            "bytes": show_size(cell.size), "calls": f"{cell.iterations:,}", "hccl": show_time(cell.ours),
            "hccl undisturbed": show_time(cell.quiet), "hccl-perf": show_time(cell.perf),
            peer: show_time(best), "its setting": label or "", default: show_time(cell.default),
            "Gloo best": show_time(gloo), "its algorithm": gloo_label or "", floor: show_time(cell.floor[1]),
            "/ best": show_ratio(ratios["best"]), "/ default": show_ratio(ratios["default"]),
            f"/ {floor}": show_ratio(ratios["floor"]),
            "/ undisturbed": show_ratio(ratios["undisturbed"]), "must / aim": show_goals(section, cell)})
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    return table(columns, [[row[name] for name in columns] for row in rows])


def all_facts():
    return machine_facts() | {"mpi": (output_of("mpirun", "--version").splitlines() or ["unknown"])[0]}


def show_facts(facts, command, seconds, compared, left_out):
    left_out = f"Left out: {'; '.join(left_out)}. " if left_out else ""
    return "\n".join([
        show_run(facts, command, seconds, f"{', '.join(compared)}; "),
        f"{left_out}{TIMES} Open MPI settings: default, or tuned (no single copy, eager limit 64 KiB, largest send "
        "256 KiB) with the algorithm that its name gives, or otherwise with the one that coll/tuned chooses."])


def show_summary(sections, cores):
    counts = {"aim": 0, "reached": 0, "MISSED": 0, "short of aim": 0}
    missed = []
    for section, cells in sections:
        for cell in cells:
            for what, ratio, must, _, verdict in judge(section, cell):
                counts[verdict] += 1
                if verdict == "MISSED":
                    ranks = f"{cell.ranks} ranks" + (f" on {cell.nodes} nodes" if cell.nodes > 1 else "")
                    missed.append(f"- {cell.collective}, {ranks}, {show_size(cell.size)}, {section}: "
                                  f"{ratio:.2f} times {name_of(section, what)}, must be at most {must:g}")
    total = sum(counts.values())
    lines = [f"Goals: {total} judged; {counts['aim']} reached the aim, {counts['reached']} only the bound, "
             f"{counts['MISSED']} missed the bound, {counts['short of aim']} missed an aim that has no bound."]
    if cores != 2:
        lines.append(f"The goals are for two cores; this machine has {cores}.")
    return "\n".join(lines + missed), not missed


def show_section(section, cells):
    first = cells[0]
    title = TITLES[section].format(collective=first.collective, ranks=first.ranks, nodes=first.nodes)
    return f"### {title}\n\n{table_of(section, cells)}"


def write_samples(path, sections, **about):
    """Writes all cells of [(section, cells)] as JSON, together with `about`, the facts about the run."""
    shown = [{"section": name, "cells": [cell.as_json() for cell in cells]} for name, cells in sections]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**about, "sections": shown}, file, indent=1)
