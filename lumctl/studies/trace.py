"""A cluster over time: the jobs of a trace, or of a generator, on a torus and joined by light.

It asks of jobs that come and go what the studies placement, fragmentation and overprovisioning ask of a cluster at one
moment. With ``--trace FILE`` the jobs are those of a CSV file. Its rows have the file's checksum (SHA-256), for traces
are no part of this repository. Traces that were published are for example those of Alibaba PAI, of Microsoft Philly and
of Helios; each has a form and a licence of its own, and ``--trace-map FILE`` (YAML) says which columns to read:

    columns: {submit: submit_time, duration: duration, accelerators: gpu_num}
    units: {submit: datetime, duration: s}

Times are in ms, s (the default), min, h or d, and the time of submission may be a datetime. Accelerators are whole, or
in percent of one. Without a trace, jobs arrive in a Poisson process, for durations that are log-normal.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from math import exp, log, prod
from pathlib import Path
from random import Random

from lumctl.studies.cluster_jobs import JobCluster, JobStart, slice_size
from lumctl.studies.study import Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.studies.torus_cluster import FIBRES, RACK, RACKS, SHAPES, fibres_parameter
from lumctl.studies.trace_file import MOST_JOBS, ClusterJob, trace_of, trace_source

_WHOLE = RACKS * prod(RACK)
_SMALL = (1, 2)
"""Jobs of less than one server. All others have the sizes of published slices, each as often."""
_DRAWN = ("load", "small_percent", "sigma", "median_s", "seeds")
"""The parameters of the generator, which a trace has no use for."""


def _cases(settings: StudySettings, source: str = "") -> Iterator[StudyCase]:
    fibres = [0, *(int(each) for each in settings["fibres"])]
    queues = [int(each) for each in settings["queue"]]
    count, periods = (int(settings[name][0]) for name in ("jobs", "periods"))
    drawn: list[list[float]] = [list(settings[name]) for name in _DRAWN[:-1] if name in settings]
    if "seeds" in settings:
        drawn.append([*range(int(settings["seeds"][0]))])
    return ((source, count, periods, *each) for each in product(queues, fibres, *drawn))


def _solve(source: str, most: int, periods: int, queue: int, fibres: int, *drawn: float) -> Iterator[StudyRow]:
    span_s = deque(_jobs(source, most, drawn), maxlen=1)[0].submit_s
    found = [_Period(span_s * at / periods, span_s * (at + 1) / periods) for at in range(periods)]
    cluster = JobCluster(fibres, bool(queue), [each.to_s for each in found])
    for job in _jobs(source, most, drawn):
        _submit(cluster, job, found)
    cluster.advance(span_s)
    names = ("load", "small_percent", "sigma", "median_s", "seed")
    own: dict[str, float | str] = dict(zip(names, drawn or "-" * len(names), strict=True))
    for number, (each, index) in enumerate(zip(found, cluster.indices, strict=True)):
        yield {
            "trace": json.loads(source)["checksum"] if source else "generated",
            **own,
            "queue": queue,
            "way": f"light-{fibres}" if fibres else "torus",
            "period": number,
            **each.row(),
            "fragmentation": index,
        }


def _jobs(source: str, most: int, drawn: Sequence[float]) -> Iterator[ClusterJob]:
    # Made again for each use: those of a large trace would take much memory.
    return islice(trace_of(source).jobs() if source else _generated(*drawn), most)


def _generated(load: float, small_percent: float, sigma: float, median_s: float, seed: float) -> Iterator[ClusterJob]:
    """Jobs without end, which ask for ``load`` times the accelerators of the cluster on average."""
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    small = small_percent / 100.0
    mean_size = small * sum(_SMALL) / len(_SMALL) + (1.0 - small) * sum(SHAPES) / len(SHAPES)
    mean_s = median_s * exp(sigma**2 / 2.0)
    rate = load * _WHOLE / (mean_size * mean_s)
    submit_s = 0.0
    while True:
        size = rng.choice(_SMALL if rng.random() < small else sorted(SHAPES))
        yield ClusterJob(submit_s, rng.lognormvariate(log(median_s), sigma), size)
        submit_s += rng.expovariate(rate)


def _submit(cluster: JobCluster, job: ClusterJob, periods: "Sequence[_Period]") -> None:
    span_s = periods[-1].to_s
    own = periods[min(int(job.submit_s / span_s * len(periods)), len(periods) - 1) if span_s else 0]
    size = slice_size(job.accelerators)
    if size is None:
        own.too_large += 1
    elif not job.accelerators:
        own.without += 1
    else:
        start = cluster.submit(job)
        own.count(job, start)
        if start.start_s is not None:
            for each in periods:
                each.use(job, size, start.start_s)


@dataclass(slots=True)
class _Period:
    """What the requests of a period met, and the use of the cluster in it, in accelerator-seconds."""

    from_s: float
    to_s: float
    requests: int = 0
    refused: int = 0
    waited: int = 0
    fragmented: int = 0
    by_light: int = 0
    too_large: int = 0
    without: int = 0
    wait_s: float = 0.0
    longest_s: float = 0.0
    asked: float = 0.0
    used: float = 0.0
    moved: float = 0.0

    def count(self, job: ClusterJob, start: JobStart) -> None:
        """Count a request that was made in this period."""
        self.requests += 1
        self.fragmented += start.fragmented
        self.by_light += start.by_light
        if start.start_s is None:
            self.refused += 1
            return
        wait_s = start.start_s - job.submit_s
        self.waited += wait_s > 0
        self.wait_s += wait_s
        self.longest_s = max(self.longest_s, wait_s)

    def use(self, job: ClusterJob, size: int, start_s: float) -> None:
        """Add what a job with a slice uses in this period, whenever it was submitted."""
        shared_s = min(start_s + job.duration_s, self.to_s) - max(start_s, self.from_s)
        if shared_s > 0:
            self.asked += shared_s * job.accelerators
            self.used += shared_s * size
            self.moved += shared_s * size**2

    def row(self) -> Mapping[str, float]:
        """The columns of the period.

        ``migrated_parts`` is how many accelerators migration replaces on average if one that is in use fails: those of
        its slice.
        """
        placed, whole = self.requests - self.refused, _WHOLE * (self.to_s - self.from_s)
        return {
            "from_s": self.from_s,
            "to_s": self.to_s,
            "requests": self.requests,
            "too_large": self.too_large,
            "without": self.without,
            "refused": self.refused,
            "refused_percent": 100.0 * self.refused / self.requests if self.requests else 0.0,
            "waited": self.waited,
            "fragmented": self.fragmented,
            "by_light": self.by_light,
            "mean_wait_s": self.wait_s / placed if placed else 0.0,
            "longest_wait_s": self.longest_s,
            "asked_percent": 100.0 * self.asked / whole if whole else 0.0,
            "used_percent": 100.0 * self.used / whole if whole else 0.0,
            "migrated_parts": self.moved / self.used if self.used else 0.0,
        }


def of_trace(path: Path, mapping: Path | None) -> Study:
    """The study of the jobs of a file.

    Raises:
        UsageError: the file, or that of the mapping, cannot be read or is not valid.
    """
    source, inputs = trace_source(path, mapping)
    parameters = [
        replace(each, default=(MOST_JOBS,), quick=_QUICK_JOBS) if each.name == "jobs" else each
        for each in STUDY.parameters
        if each.name not in _DRAWN
    ]
    return replace(STUDY, parameters=tuple(parameters), cases=partial(_cases, source=source), inputs=inputs)


_QUICK_JOBS = (500,)

STUDY = Study(
    name="trace",
    question="What do jobs that come and go meet on a torus, and if light joins servers where no box is free?",
    parameters=(
        StudyParameter("load", "Mean demand, in whole clusters.", (0.9, 1.1), 0.01, 10, quick=(1.1,)),
        StudyParameter("small_percent", "Share of jobs below one server.", (0.0, 50.0), 0, 100, quick=(0.0,)),
        StudyParameter("sigma", "Spread of durations: of their logarithm.", (1.0, 1.5), 0.0, 4.0, quick=(1.0,)),
        StudyParameter("median_s", "Median of durations.", (3600.0,), 1.0, 1e7),
        StudyParameter(
            "queue", "1: a job without a place waits, and all after it; 0: refused.", (0, 1), 0, 1, whole=True
        ),
        fibres_parameter((FIBRES,)),
        StudyParameter(
            "jobs", "The first so many jobs.", (3000,), 1, MOST_JOBS, _QUICK_JOBS, whole=True, several=False
        ),
        StudyParameter("periods", "Equal parts of the time of submissions.", (4,), 1, 1000, whole=True, several=False),
        StudyParameter("seeds", "Random draws of each.", (2,), 1, 10_000, quick=(1,), whole=True, several=False),
    ),
    claims=(),
    cases=_cases,
    solve=_solve,
    values=lambda *_: {},  # no source claims anything of these jobs
    plots=(
        StudyPlot("period", ("refused_percent", "used_percent"), "period", "%", ("queue", "way")),
        StudyPlot("period", ("fragmentation",), "period", "index of fragmentation", ("queue", "way")),
        StudyPlot("period", ("mean_wait_s",), "period", "mean waiting time (s)", ("queue", "way")),
    ),
    of_trace=of_trace,
)
