#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reports of ./dev bench and ./dev micro, from measurements that are made up: ratios, verdicts, plot and page."""
import importlib.util
import math
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "perf"), str(ROOT / "perf/peers")]
import measure
import page
import plot
import trainers

SVG = "{http://www.w3.org/2000/svg}"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


micro = load("micro_report", ROOT / "perf/micro/report.py")


def cell(collective, ranks, size, ours, best, floor=None):
    made = measure.Cell(collective, size, ranks)
    made.ours, made.mpi = ours, {"tuned": best}
    made.floors = {"64 KiB": floor} if floor else {}
    return made


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "page.md"
        self.path.write_text("# A\n" + "".join(
            f"\n<!-- {name}: begin of what the command writes -->\nold {name}\n<!-- {name}: end -->\n"
            for name in ("bench", "micro")))

    def test_replaces_its_section_alone_however_often(self):
        for text in ("first", "second"):
            page.write_section(self.path, "micro", [text, "table"])
        written = self.path.read_text()
        self.assertIn("old bench", written)
        self.assertIn("second\n\ntable\n\n<!-- micro: end -->", written)
        self.assertNotIn("old micro", written)
        self.assertNotIn("first", written)

    def test_says_what_is_missing_before_anything_is_measured(self):
        self.path.write_text("# A\n")
        with self.assertRaisesRegex(SystemExit, "lacks the lines"):
            page.require_section(self.path, "bench")

    def test_the_documents_sections_are_there(self):
        for name in ("bench", "micro", "trainer"):
            page.require_section(ROOT / "docs/performance.md", name)


class Plot(unittest.TestCase):
    def draw(self, sections):
        path = Path(tempfile.mkdtemp()) / "plot.svg"
        self.addCleanup(lambda: (path.unlink(), path.parent.rmdir()))
        plot.write_plot(path, sections)
        return xml.etree.ElementTree.parse(path).getroot()

    def test_a_panel_for_each_queued_section(self):
        svg = self.draw([("queued", [cell("reduce", 8, 1024, [10], [20]), cell("reduce", 8, 4096, [30], [20], [15])]),
                         ("queued", [cell("barrier", 2, 0, [10], [20])]),
                         ("latency", [cell("all_reduce", 2, 8, [10], [20])])])
        panels = svg.findall(f"{SVG}g")
        self.assertEqual([panel.find(f"{SVG}text").text for panel in panels], ["reduce, 8 ranks", "barrier, 2 ranks"])
        hints = [title.text for title in panels[0].iter(f"{SVG}title")]
        self.assertEqual(hints, ["1K: 0.50 of best", "4K: 1.50 of best", "4K: 2.00 of floor"])

    def test_slower_points_stand_out(self):
        svg = self.draw([("queued", [cell("reduce", 8, 1024, [10], [20]), cell("reduce", 8, 4096, [30], [20])])])
        fills = [dot.get("fill") for dot in svg.find(f"{SVG}g").iter(f"{SVG}circle")]
        self.assertEqual(fills, [plot.BEST, plot.SLOWER])

    def test_cells_survive_json(self):
        before = cell("reduce", 8, 1024, [10, 12], [20, 20], [5, 6])
        before.iterations, before.default, before.quiet, before.perf = 7, [30, 31], [9, 8], [11, 13]
        self.assertEqual(measure.Cell.from_json(before.as_json()).as_json(), before.as_json())


class Budget(unittest.TestCase):
    def rounds(self, minutes, round_seconds, weights):
        """How many rounds each part makes if a round of it takes so long."""
        with mock.patch.object(measure.time, "monotonic") as clock:
            clock.return_value = 100.0
            budget = measure.Budget(minutes, 3, sum(weights))
            made = []
            for weight in weights:
                budget.begin(weight)
                count = 0
                for _ in budget.rounds():
                    clock.return_value += round_seconds
                    count += 1
                made.append(count)
            return made

    def test_rounds_fit_the_time(self):
        self.assertEqual(self.rounds(math.inf, 60, [1, 1]), [3, 3])
        self.assertEqual(self.rounds(4, 60, [1, 1]), [2, 2])
        self.assertEqual(self.rounds(4, 60, [3, 1]), [3, 1])
        self.assertEqual(self.rounds(1, 60, [1, 1]), [1, 1])


class Micro(unittest.TestCase):
    def ratios(self, float_in_cache):
        times = {"copy/cache/2/memcpy": 100, "copy/memory/2/memcpy": 900, "copy/memory/2/streaming by tile": 500,
                 "reduce/cache/2/float/sum": float_in_cache, "reduce/memory/2/float/sum": 500,
                 "reduce/cache/2/bfloat16/sum": 150}
        return micro.kernel_ratios(times)

    def test_ratios_are_to_the_fastest_copy(self):
        ratios = self.ratios(105)
        self.assertEqual(ratios["cache", 2, "float", "sum"], 1.05)
        self.assertEqual(ratios["memory", 2, "float", "sum"], 1.0)

    def test_a_missed_goal_is_said(self):
        self.assertTrue(micro.judge(self.ratios(105))[1])
        lines, met = micro.judge(self.ratios(120))
        self.assertFalse(met)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in lines], ["MISSED", "met", "met"])


class Trainers(unittest.TestCase):
    def side(self, label, steps, exposed):
        made = trainers.Side(label, [], {})
        made.steps, made.exposed = steps, exposed
        return made

    def verdicts(self, ddp_steps, exposed):
        ours = [self.side("hccl, ddp", ddp_steps, exposed), self.side("hccl, fast_ddp", [10, 10], [2, 2])]
        race = trainers.Race(1 << 20, ours, [self.side("Open MPI", [12, 12], [3, 3])], self.side("alone", [8, 8], []))
        self.assertIn("| Open MPI | 12 | 4 | 3 |", race.show(8))
        return [reached for _, reached in race.goals()]

    def test_goals_are_judged_within_rounds(self):
        self.assertEqual(self.verdicts([10, 10], [1, 2]), [True, True, True, True, True])
        self.assertEqual(self.verdicts([10.8, 10.8], [2.5, 2.5]), [False, False, True, True, False])


if __name__ == "__main__":
    unittest.main()
