# SPDX-License-Identifier: Apache-2.0
"""Interleaved measurement: chooses settings and iterations, and runs the rounds."""
import math
import statistics

MAX_CANDIDATES = 3
CANDIDATE_MARGIN = 1.25  # settings whose estimate is within this factor of the fastest are raced
GIVE_UP_SECONDS = 0.005  # shorter runs are too noisy to exclude a setting


def estimate(side, collective, size, seconds, limit=math.inf, **options):
    """Returns a rough estimate of the nanoseconds per call. Makes ever longer runs, until one takes about `seconds`, or
    takes GIVE_UP_SECONDS and more than `limit` nanoseconds per call."""
    iterations = 2
    while True:
        each = side.run(collective, size, iterations, warmup=1, **options)
        lasted = each * iterations / 1e9
        if lasted >= 0.7 * seconds or (each > limit and lasted >= GIVE_UP_SECONDS):
            return each
        iterations = max(iterations * 2, min(iterations * 50, math.ceil(seconds * 1e9 / max(each, 1.0))))


def choose(sides, collective, size, seconds, most=MAX_CANDIDATES, **options):
    """Returns {side: estimate} for at most `most` sides that may be the fastest at this size, the best first."""
    found = {}
    for _ in range(2):  # a disturbance rarely affects the same side twice
        for side in sides:
            limit = 3 * min(found.values(), default=math.inf)
            each = estimate(side, collective, size, seconds, limit, **options)
            found[side] = min(each, found.get(side, math.inf))
    ranking = sorted(found, key=found.get)
    near = [side for side in ranking if found[side] <= CANDIDATE_MARGIN * found[ranking[0]]]
    return {side: found[side] for side in near[:most]}


class Cell:
    """The samples of all sides for one size, in nanoseconds per call. A side has one sample for each round."""

    def __init__(self, collective, size, ranks, nodes=1):
        self.collective = collective
        self.size = size
        self.ranks = ranks
        self.nodes = nodes
        self.iterations = 0
        self.ours = []
        self.default = []
        self.default_label = ""
        self.peers = {}  # label -> samples of the settings that were raced
        self.gloo = {}  # the same for Gloo's algorithms
        self.floors = {}
        self.quiet = []  # hccl without the busy loop, if the other samples are taken alongside the loop
        self.perf = []  # times from hccl-perf

    def best_of(self, samples):
        """Returns the label and the samples with the lowest median, or (None, []) if there are none."""
        return min(samples.items(), key=lambda item: statistics.median(item[1])) if samples else (None, [])

    @property
    def settings(self):
        """Returns the samples of the settings that were raced and, if they were taken, those of the default."""
        return {self.default_label: self.default, **self.peers} if self.default and self.default_label else self.peers

    @property
    def best(self):
        """Returns the name and the samples of the fastest peer."""
        return self.best_of({**self.settings, **self.gloo})

    @property
    def floor(self):
        return self.best_of(self.floors)

    def ratio_to(self, samples):
        """Returns hccl's time relative to `samples`, as the median over the rounds, or None without samples."""
        if not samples or not self.ours:
            return None
        return statistics.median(a / b for a, b in zip(self.ours, samples))

    def as_json(self):
        return {"collective": self.collective, "ranks": self.ranks, "nodes": self.nodes, "bytes": self.size,
                "iterations": self.iterations, "ours_ns": self.ours, "mpi_default_ns": self.default,
                "mpi_default_setting": self.default_label, "peers_ns": self.peers, "gloo_ns": self.gloo, "best": self.best[0], "floor_ns": self.floors, "floor_best": self.floor[0],
                "ours_undisturbed_ns": self.quiet, "hccl_perf_ns": self.perf}

    @classmethod
    def from_json(cls, row):
        cell = cls(row["collective"], row["bytes"], row["ranks"], row.get("nodes", 1))
        cell.iterations, cell.ours, cell.default = row["iterations"], row["ours_ns"], row["mpi_default_ns"]
        cell.peers, cell.gloo, cell.floors = row["peers_ns"], row.get("gloo_ns", {}), row["floor_ns"]
        cell.quiet, cell.perf = row["ours_undisturbed_ns"], row["hccl_perf_ns"]
        cell.default_label = row.get("mpi_default_setting", "")
        return cell


def iterations_for(seconds, estimates):
    """Returns the number of iterations that the fastest side completes in about `seconds`. `estimates` are
    nanoseconds per call."""
    return max(2, math.ceil(1.1 * seconds * 1e9 / min(estimates)))


def rotated(items, by):
    return items[by % len(items):] + items[:by % len(items)]


class Race:
    """Chooses the settings and the number of iterations for one cell, then adds one sample of every side per round."""

    def __init__(self, field, collective, size, seconds, with_default=True, latency=False, in_place=False, floors=None):
        self.cell = Cell(collective, size, field.ranks, field.nodes)
        self.in_place = in_place
        self.latency = latency
        self.seconds = seconds
        probe = seconds / 5
        ours = estimate(field.ours, collective, size, probe, latency=latency, in_place=in_place)
        self.lanes = [(field.ours, self.cell.ours)]
        estimates = {}
        for peers, samples in ((field.peers, self.cell.peers), (field.gloo, self.cell.gloo)):
            able = [side for side in peers if size <= side.largest]
            chosen = choose(able, collective, size, probe, in_place=in_place)
            self.lanes += [(side, samples.setdefault(side.label, [])) for side in chosen]
            estimates.update(chosen)
        self.cell.iterations = iterations_for(seconds, [ours, *estimates.values()])
        if with_default and field.default:
            self.cell.default_label = field.default.label
            if field.default in estimates:
                self.cell.default = self.cell.peers[field.default.label]
            else:
                self.lanes.append((field.default, self.cell.default))
        self.floor_iterations = 0
        floors = field.floors if floors is None else floors
        if floors and size >= field.least_floor_size:
            fastest = choose(floors, collective, size, probe, most=2, in_place=in_place)
            self.floor_iterations = iterations_for(seconds, fastest.values())
            self.lanes += [(side, self.cell.floors.setdefault(side.label, [])) for side in fastest]

    def verify(self):
        for side, _ in self.lanes:
            side.verify(self.cell.collective, self.cell.size, self.in_place)

    def round(self, number):
        self.race(number)
        for _ in range(3):  # the first round shows whether the estimates were accurate
            shortest = min(samples[-1] for _, samples in self.lanes if not self.is_floor(samples))
            if number > 0 or shortest * self.cell.iterations >= self.seconds * 1e9:
                return
            self.cell.iterations = iterations_for(self.seconds, [shortest])
            for _, samples in self.lanes:
                samples.clear()
            self.race(number)

    def is_floor(self, samples):
        return any(samples is floor for floor in self.cell.floors.values())

    def race(self, number):
        for side, samples in rotated(self.lanes, number):
            iterations = self.floor_iterations if self.is_floor(samples) else self.cell.iterations
            options = {"in_place": self.in_place}
            if self.latency and samples is self.cell.ours:
                options["latency"] = True
            samples.append(side.run(self.cell.collective, self.cell.size, iterations,
                                    warmup=max(2, iterations // 20), **options))
