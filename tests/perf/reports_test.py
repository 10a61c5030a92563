#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the reports of ./dev bench and ./dev micro with made-up measurements: ratios, verdicts,
plots, and sections of a page. Also tests the plots of hccl-perf and ddp_trainer, and measurements
with made-up drivers."""
import importlib.util
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "perf"), str(ROOT / "perf/peers")]
import bench_plot
import charts
import drivers
import measure
import nodes
import page
import plot
import report
import torch_backends
import torch_plot
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
    made.ours, made.peers = ours, {"tuned": best}
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

    def test_replaces_only_its_section_each_time(self):
        for text in ("first", "second"):
            page.write_section(self.path, "micro", [text, "table"])
        written = self.path.read_text()
        self.assertIn("old bench", written)
        self.assertIn("second\n\ntable\n\n<!-- micro: end -->", written)
        self.assertNotIn("old micro", written)
        self.assertNotIn("first", written)

    def test_refuses_a_page_without_its_section(self):
        self.path.write_text("# A\n")
        with self.assertRaisesRegex(SystemExit, "lacks the lines"):
            page.require_section(self.path, "bench")

    def test_documents_contain_their_sections(self):
        for name in ("bench", "micro", "nodes", "trainer"):
            page.require_section(ROOT / "docs/performance.md", name)


class BenchPlot(unittest.TestCase):
    def draw(self, sections):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "plot.svg"
        bench_plot.write_plot(path, sections)
        self.glance = xml.etree.ElementTree.parse(path.with_name("plot-glance.svg")).getroot()
        return xml.etree.ElementTree.parse(path).getroot()

    def titles(self, svg):
        return [panel.find(f"{SVG}text").text for panel in svg.findall(f"{SVG}g")]

    def test_glance_has_one_row_with_the_most_ranks(self):
        names = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce")
        svg = self.draw([("queued", [cell(name, ranks, 1024, [10], [20])]) for name in names for ranks in (8, 2)])
        self.assertEqual(len(self.titles(svg)), 10)
        self.assertEqual(self.titles(self.glance), [f"{name}, 8 ranks" for name in names[:4]])

    def test_has_a_panel_for_each_queued_section(self):
        svg = self.draw([("queued", [cell("reduce", 8, 1024, [10], [20]), cell("reduce", 8, 4096, [30], [20], [15])]),
                         ("queued", [cell("barrier", 2, 0, [10], [20])]),
                         ("latency", [cell("all_reduce", 2, 8, [10], [20])])])
        panels = svg.findall(f"{SVG}g")
        self.assertEqual([panel.find(f"{SVG}text").text for panel in panels], ["reduce, 8 ranks", "barrier, 2 ranks"])
        hints = [title.text for title in panels[0].iter(f"{SVG}title")]
        self.assertEqual(hints, ["1K: 0.50 of best", "4K: 1.50 of best", "4K: 2.00 of floor"])

    def test_highlights_slower_points(self):
        svg = self.draw([("queued", [cell("reduce", 8, 1024, [10], [20]), cell("reduce", 8, 4096, [30], [20])])])
        fills = [dot.get("fill") for dot in svg.find(f"{SVG}g").iter(f"{SVG}circle")]
        self.assertEqual(fills, [bench_plot.BEST, bench_plot.SLOWER])

    def test_the_default_counts_even_if_the_first_pass_did_not_choose_it(self):
        made = cell("reduce", 8, 1024, [10], [20])
        made.default, made.default_label = [16], "Open MPI 4, default"
        self.assertEqual(made.best, ("Open MPI 4, default", [16]))

    def test_cells_round_trip_through_json(self):
        before = cell("reduce", 8, 1024, [10, 12], [20, 20], [5, 6])
        before.default_label = "Open MPI 4, default"
        before.iterations, before.default, before.quiet, before.perf = 7, [30, 31], [9, 8], [11, 13]
        before.gloo = {"ring": [14, 15]}
        self.assertEqual(measure.Cell.from_json(before.as_json()).as_json(), before.as_json())


class RunPlot(unittest.TestCase):
    """Tests plots of the files that hccl-perf and ddp_trainer write with --json."""

    def row(self, size, nanoseconds, type_name="float", redop="sum", root=-1, in_place=True):
        cell = {"time_ns": nanoseconds, "busbw_gb_per_s": size / nanoseconds}
        return {"size_bytes": size, "type": type_name, "redop": redop, "root": root,
                "out_of_place": cell, "in_place": cell if in_place else None}

    def sweep(self, **keywords):
        return [self.row(size, size + 500, **keywords) for size in (1024, 4096, 1 << 20)]

    def draw(self, rows):
        run = {"program": "hccl-perf", "version": "1.0", "started": "2026-02-02T02:40:00Z", "collective": "all_reduce",
               "ranks": 4, "host": {"name": "somewhere", "cores": 16, "cpu": "A & <B>"}, "rows": rows}
        svg = xml.etree.ElementTree.fromstring(plot.picture_of(run))
        self.words = [words.text for words in svg.iter(f"{SVG}text")]
        return [panel.findall(f"{SVG}polyline") for panel in svg.findall(f"{SVG}g")]

    def test_shows_bandwidth_and_time_of_both_placements(self):
        panels = self.draw(self.sweep())
        self.assertEqual([len(lines) for lines in panels], [2, 2])
        for words in ("all_reduce, 4 ranks", "Bus bandwidth (GB/s)", "Time per call", "out of place", "in place", "1K", "1M",
                      "float, sum  ·  somewhere, 16 cores (A & <B>)  ·  2026-02-02T02:40:00Z  ·  hccl-perf 1.0",
                      "1 us", "1 ms"):
            self.assertIn(words, self.words)

    def test_names_what_differs_between_lines(self):
        panels = self.draw(self.sweep(root=0, redop="none") + self.sweep(root=1, redop="none"))
        self.assertEqual([len(lines) for lines in panels], [4, 4])
        self.assertEqual(len({line.get("stroke") for line in panels[0]}), 2)
        self.assertEqual(["root 0" in self.words, "root 1" in self.words, "none" in self.words], [True, True, False])

    def test_each_type_has_its_own_panels(self):
        types = ["int8", "uint8", "int32", "float"]
        self.assertEqual(len(self.draw([row for name in types for row in self.sweep(type_name=name)])), 2)
        panels = self.draw([row for name in types for redop in ("sum", "max")
                            for row in self.sweep(type_name=name, redop=redop)])
        self.assertEqual([len(lines) for lines in panels], [4] * 8)
        for words in ("Bus bandwidth (GB/s), int8", "Time per call, float", "sum", "max"):
            self.assertIn(words, self.words)

    def test_bandwidth_axis_has_decades(self):
        self.draw([self.row(4096, 1e7), self.row(8192, 1e3)])
        for words in ("0.0001", "0.001", "0.01", "0.1", "1", "10"):
            self.assertIn(words, self.words)

    def test_omits_in_place_if_absent(self):
        self.assertEqual([len(lines) for lines in self.draw(self.sweep(in_place=False))], [1, 1])
        self.assertNotIn("in place", self.words)

    def test_draws_the_median_of_the_cycles(self):
        times = (9000, 1000, 5000)
        drawn = [self.draw([self.row(4096, time) for time in some])[1][0].get("points") for some in (times, times[2:])]
        self.assertEqual(*drawn)
        self.assertIn("4K", self.words)

    def test_refuses_barriers_and_other_files(self):
        for run in ({"rows": [self.row(0, 900)]}, {"rows": []}, {}):
            with self.assertRaisesRegex(ValueError, "sizes to draw"):
                plot.picture_of(run)

    def test_draws_loss_and_time_of_a_training(self):
        run = {"mode": "ddp", "ranks": 2, "training": "64-32-10", "epochs": [
            {"epoch": epoch, "loss": 1 / epoch, "test_loss": 2 / epoch, "step_ms": 3.5, "communication_ms": 0.0}
            for epoch in (1, 2, 3)]}
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "run.json", Path(folder) / "plot.svg"
            source.write_text(json.dumps(run))
            with mock.patch.object(sys, "argv", ["plot.py", str(source), str(target)]):
                plot.main()
            words = [words.text for words in xml.etree.ElementTree.parse(target).getroot().iter(f"{SVG}text")]
        for expected in ("ddp_trainer: ddp, 2 ranks", "64-32-10", "Loss over the epochs", "Milliseconds per step", "2"):
            self.assertIn(expected, words)


class TorchPlot(unittest.TestCase):
    def samples(self):
        """Returns measurements of two rounds, in which gloo takes 100 us and 300 us. hccl takes half
        of these times with plain tensors and a quarter with tensors in shared memory. For all_gather
        on 4 ranks, hccl takes twice as long as gloo."""
        speedups = {"gloo": 1, "plain": 2, "bucket": 4, "allocator": 4}
        return [{"collective": collective, "ranks": ranks, "size": size, "round": number, "side": side,
                 "us": gloo / (0.5 if side != "gloo" and (collective, ranks) == ("all_gather", 4) else speedup)}
                for ranks in (2, 4) for size in (1024, 1 << 20) for collective in ("all_reduce", "all_gather")
                for number, gloo in enumerate((100, 300)) for side, speedup in speedups.items()]

    def draw(self, samples, *options):
        with tempfile.TemporaryDirectory() as folder:
            run, target = Path(folder) / "run.json", Path(folder) / "plot.svg"
            run.write_text(json.dumps({"facts": {"load": 0.5, "cores": 2}, "samples": samples, "training": []}))
            with mock.patch.object(sys, "argv", ["torch_backends.py", "--from", str(run), "--plot", str(target), *options]), \
                    mock.patch("sys.stdout"):
                torch_backends.main()
            return xml.etree.ElementTree.parse(target).getroot()

    def test_has_a_panel_per_rank_count_and_a_line_per_collective_and_memory(self):
        panels = self.draw(self.samples()).findall(f"{SVG}g")
        self.assertEqual([panel.find(f"{SVG}text").text for panel in panels], ["2 ranks", "4 ranks"])
        for panel in panels:
            lines = panel.findall(f"{SVG}polyline")
            self.assertEqual([bool(one.get("stroke-dasharray")) for one in lines], [True, False] * 2)
            self.assertEqual(len({one.get("stroke") for one in lines}), 2)

    def test_axes_are_logarithmic(self):
        svg = self.draw(self.samples())
        hints = [title.text for title in svg.iter(f"{SVG}title")]
        self.assertIn("all_reduce, plain tensor, 1K: 2 times as fast as gloo", hints)
        self.assertIn("all_reduce, tensor in shared memory, 1M: 4 times as fast as gloo", hints)
        self.assertIn("all_gather, plain tensor, 1M: 0.5 times as fast as gloo", hints)
        axes = torch_plot.axes_of(torch_plot.cells_of(self.samples()))
        self.assertAlmostEqual(axes.y(1) - axes.y(2), axes.y(2) - axes.y(4))
        self.assertLess(axes.x(1024), axes.x(1 << 20))

    def test_supports_dark_mode(self):
        style = self.draw(self.samples()).find(f"{SVG}style").text
        self.assertIn("prefers-color-scheme: dark", style)
        for color in (charts.INK, charts.GRID, charts.PAPER, torch_plot.FASTER):
            self.assertIn(color, style)

    def test_refuses_a_run_without_collectives(self):
        with self.assertRaisesRegex(SystemExit, "no collectives to draw"):
            self.draw([])


class Micro(unittest.TestCase):
    def times(self, float_in_cache):
        return {"copy/cache/2/memcpy": 100, "copy/memory/2/memcpy": 900, "copy/memory/2/streaming by tile": 500,
                "reduce/cache/2/float/sum": float_in_cache, "reduce/memory/2/float/sum": 500,
                "reduce/cache/2/bfloat16/sum": 150}

    def ratios(self, float_in_cache):
        return micro.kernel_ratios(self.times(float_in_cache))

    def test_ratios_are_to_the_fastest_copy(self):
        ratios = self.ratios(105)
        self.assertEqual(ratios["cache", 2, "float", "sum"], 1.05)
        self.assertEqual(ratios["memory", 2, "float", "sum"], 1.0)

    def test_reports_a_missed_goal(self):
        self.assertTrue(micro.judge(self.ratios(105))[1])
        lines, met = micro.judge(self.ratios(120))
        self.assertFalse(met)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in lines], ["MISSED", "met", "met"])

    def test_other_copies_are_shown_but_not_judged(self):
        ratios = micro.against_stores(self.times(120), {"copy/cache/2/memcpy": 200})
        self.assertEqual(ratios["cache", 2, "float", "sum"], 0.6)
        self.assertNotIn(("memory", 2, "float", "sum"), ratios)
        self.assertTrue(micro.show_against_stores(ratios).endswith("at most 0.60"))


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

    def test_goals_are_judged_round_by_round(self):
        self.assertEqual(self.verdicts([10, 10], [1, 2]), [True, True, True, True, True])
        self.assertEqual(self.verdicts([10.8, 10.8], [2.5, 2.5]), [False, False, True, True, False])


class NodesReport(unittest.TestCase):
    def cell(self, size, ours, mpi, gloo, floor):
        made = cell("all_reduce", 2, size, ours, mpi, floor)
        made.gloo = {"ring": gloo}
        return made

    def verdicts(self, section, made):
        return [(what, round(ratio, 2), verdict) for what, ratio, _, _, verdict in report.judge(section, made)]

    def test_best_is_the_faster_peer(self):
        for mpi, gloo in (([20, 20], [10, 10]), ([10, 10], [20, 20])):
            made = self.cell(16 << 20, [8, 8], mpi, gloo, [7, 7])
            self.assertEqual(self.verdicts("nodes", made), [("best", 0.8, "reached"), ("floor", 1.14, "reached")])

    def test_only_large_sizes_have_goals_when_queued(self):
        for size in nodes.SIZES:
            judged = self.verdicts("nodes", self.cell(size, [30], [10], [10], [10]))
            self.assertEqual([verdict for _, _, verdict in judged], ["MISSED"] * 2 if size >= 16 << 20 else [])

    def test_latency_is_compared_only_with_the_ping_pong(self):
        for ours, verdict in ((12, "aim"), (14, "reached"), (16, "MISSED")):
            made = self.cell(8, [ours], [1], [1], [10])
            self.assertEqual(self.verdicts("nodes latency", made), [("floor", ours / 10, verdict)])

    def test_tables_name_the_sides(self):
        table = report.show_section("nodes", [self.cell(16 << 20, [9000], [10000], [11000], [8000])])
        self.assertIn("2 nodes with one rank each", table)
        self.assertIn("| Open MPI best | its setting | Gloo best | its algorithm | raw exchange | / best | / raw exchange |",
                      table)
        self.assertIn("| 9 | 10 | tuned | 11 | ring | 8 | 0.90 | 1.12 | best 0.9 / 0.7: reached; raw exchange 1.15 / 1.05: "
                      "reached |", table)
        missed = self.cell(8, [16000], [1], [1], [10000])
        lines, reached = report.show_summary([("nodes latency", [missed])], 2)
        self.assertFalse(reached)
        self.assertIn("1.60 times raw ping-pong, must be at most 1.5", lines)

    def test_a_call_of_8_bytes_is_also_compared_with_one_message(self):
        queued, alone = self.cell(8, [6000], [1], [1], [5000]), self.cell(8, [6400], [1], [1], [8000])
        line = nodes.show_exchange([("nodes", [queued]), ("nodes latency", [alone])])
        self.assertIn("1.60 times as long as half a raw ping-pong and 1.28 times as long as a raw exchange. A raw "
                      "exchange takes 1.25 times as long as half", line)
        self.assertEqual(nodes.show_exchange([("nodes", [queued])]), "")

    def test_reports_a_missing_side_and_takes_the_other_as_best(self):
        made = cell("all_reduce", 2, 16 << 20, [8], [10], [8])
        self.assertNotIn("Gloo", report.show_section("nodes", [made]))
        self.assertEqual(self.verdicts("nodes", made)[0], ("best", 0.8, "reached"))
        field = mock.Mock(missing={"Gloo": "there is no Gloo"}, drivers=[])
        facts = {"revision": "r", "processor": "p", "cores": 2, "memory": "m", "kernel": "k", "load": 0.0}
        self.assertIn("Gloo was not measured: there is no Gloo",
                      nodes.show_sides(facts, field, "command", 60, ["there is no iperf3", [1.0, 1.0]]))

    def test_the_yardstick_counts_both_directions(self):
        def streams(name, rate):
            return {name: {"bits_per_second": rate}}
        end = {**streams("sum_received", 8e9), **streams("sum_received_bidir_reverse", 24e9), **streams("sum_sent", 1)}
        rates = nodes.iperf_rates(json.dumps({"end": end}))
        self.assertEqual(rates, [1.0, 3.0])
        shown = nodes.show_yardstick([rates, [5.0, 5.0]])
        self.assertIn("Before the rounds, `iperf3 --bidir` moved 1.00 and 3.00 GB/s", shown)
        self.assertIn("16 MiB in 8.39 ms", shown)
        self.assertEqual(nodes.show_yardstick([rates, "there is no iperf3"]), "No yardstick: there is no iperf3.")

    def test_a_failed_yardstick_gives_the_reason(self):
        for text, why in (('{"error": "unable to connect"}', "unable to connect"), ("", "no report"), ("{}", "no report"),
                          ("[]", "no report")):
            with self.assertRaisesRegex(nodes.YardstickError, why):
                nodes.iperf_rates(text)


class MadeUpDriver:
    """A driver that answers `each` nanoseconds per call and records the requests."""
    name = "made up"

    def __init__(self, each):
        self.each = each
        self.asked = []

    def ask(self, verb, **words):
        self.asked.append((verb, words))
        return {"total_ns": self.each * words["iterations"]} if verb == "run" else {"wrong": 0}


class NodesRace(unittest.TestCase):
    def setUp(self):
        settle = mock.patch.object(drivers, "SETTLE_SECONDS", 0)
        settle.start()
        self.addCleanup(settle.stop)

    def race(self, size, **more):
        self.gloo = MadeUpDriver(2e6)
        self.raw = MadeUpDriver(1e6)
        field = mock.Mock(ranks=2, ours=drivers.Side(MadeUpDriver(3e6), "hccl"), default=None, peers=[], least_floor_size=1,
                          gloo=[drivers.Side(self.gloo, "ring"), drivers.Side(self.gloo, "polling", 1, largest=64)],
                          floors=[drivers.Side(self.raw, "64 KiB", 0, "sendrecv")])
        race = measure.Race(field, "all_reduce", size, 0.01, **more)
        race.verify()
        race.round(0)
        return race.cell

    def test_skips_sizes_that_a_side_does_not_support(self):
        self.assertEqual(self.race(64).gloo, {"ring": [2e6], "polling": [2e6]})
        self.assertEqual(self.race(128).gloo, {"ring": [2e6]})

    def test_floor_runs_its_own_collective_at_any_size(self):
        self.assertEqual(self.race(8).floors, {"64 KiB": [1e6]})
        self.assertEqual({words["collective"] for _, words in self.raw.asked}, {"sendrecv"})
        self.assertEqual({words["collective"] for _, words in self.gloo.asked}, {"all_reduce"})

    def test_ping_pong_runs_in_latency_mode(self):
        ping_pong = MadeUpDriver(1e6)
        made = self.race(8, latency=True, floors=[nodes.PingPong(ping_pong, "buffers", 3, "sendrecv")])
        self.assertEqual(made.floors, {"buffers": [1e6]})
        modes = {words["mode"] for verb, words in ping_pong.asked if verb == "run"}
        self.assertEqual(modes, {"latency"})


if __name__ == "__main__":
    unittest.main()
