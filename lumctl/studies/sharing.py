"""What sharing one pool of clients among jobs gains over dividing it among them: the published jobs, five policies.

The jobs, the behaviour of clients, the static partition and the devices are those of the authors' repository of
Propius. Clients are drawn from its table of 952 phones and 356 sizes of data sets, of which this module has the shares
of clients that a job can use, and their speeds. The rates of its network are in no file of which the content is at
hand, so the seconds that a client transfers have a range.

With ``--trace FILE`` the jobs are those of a cluster trace, as the study trace reads it, and claims are not judged. A
job comes when it was submitted and needs as many clients as it had accelerators, in a round for every ``round_s``
seconds that it ran. Which clients can serve it is drawn from the tiers of the published jobs. A partition divides the
clients among the tiers, by the work that the trace has for each.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from random import Random
from statistics import fmean

from lumctl.errors import UsageError
from lumctl.spares.policies import POLICIES
from lumctl.studies.claim import Claim, ReadingValue, range_value
from lumctl.studies.client_pool import ClientChoice, PoolClient, RoundJob
from lumctl.studies.client_rounds import RoundsSetting, run_rounds
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.studies.trace_file import trace_of, trace_source

_SOURCE = "arXiv 2510.19617"
JOBS = (RoundJob(50, 1, 20), RoundJob(100, 1, 40), RoundJob(100, 2, 40), RoundJob(200, 2, 80), RoundJob(400, 3, 160))
"""The lower bounds of their clients nest: cpu 3, 6, 7; GiB of memory 2, 4, 6; fp16 400, 800, 900 and so on."""
_POOLS = (1000, 1400, 1800, 2400)
_NO_JOB_PERCENT, _ONE_PERCENT, _TWO_PERCENT, _THREE_PERCENT = 25.524, 25.171, 11.371, 37.934
"""The share of devices in each tier."""
_SPEEDS_MS = {
    1: (54, 56, 61, 66, 71, 80, 90, 99, 109, 140),
    2: (22, 25, 34, 45, 55, 61, 68, 77, 87, 110),
    3: (18, 20, 23, 26, 28, 29, 33, 39, 47, 70),
}
"""Milliseconds to infer one sample: of each tier, the middles of ten equal parts of its devices."""
_SAMPLES_PER_ROUND = 3 * 20 * 20
"""20 batches of 20 samples, and training takes three times as long as inference."""
_POLLING_S = 12.0
"""A client asks its job four times what to do next, every 3 s."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to divide clients among jobs; ``queue`` as in :class:`RoundsSetting`."""

    policy: str
    choice: ClientChoice = ClientChoice.SHARED
    queue: bool = False


STATIC, QUOTA, SHARE, CHANCE, OWN = "static", "static-quota", "static-share", "chance", "scarce"
WAYS: Mapping[str, _Way] = {
    STATIC: _Way("fifo", ClientChoice.PARTITION),
    QUOTA: _Way("fifo", ClientChoice.QUOTA),
    SHARE: _Way("fifo", ClientChoice.SHARE),
    CHANCE: _Way("fifo", ClientChoice.CHANCE),
    "random": _Way("random"),
    "fifo": _Way("fifo"),
    "srsf": _Way("srsf"),
    "las": _Way("las"),
    OWN: _Way("scarce", queue=True),
}
_SHARED = tuple(name for name, way in WAYS.items() if way.choice is ClientChoice.SHARED)


def clients_of(count: int, best_percent: float, transfer_s: float, seed: int) -> list[PoolClient]:
    """A pool drawn from the devices; ``best_percent`` of all its clients can serve every job."""
    rng = Random(f"{seed} {count}")  # noqa: S311 - a seed repeats a pool
    others = (100 - _NO_JOB_PERCENT - best_percent) / (_ONE_PERCENT + _TWO_PERCENT)
    shares = (_NO_JOB_PERCENT, _ONE_PERCENT * others, _TWO_PERCENT * others, best_percent)
    found = []
    for tier in rng.choices(range(len(shares)), shares, k=count):
        speed_ms = rng.choice(_SPEEDS_MS[tier]) if tier else 0
        found.append(PoolClient(tier, _SAMPLES_PER_ROUND * speed_ms / 1e3 + transfer_s, _POLLING_S))
    return found


_DRAWN = ("clients", "transfer_s", "binding_limit_s", "best_percent", "seed")
"""The parameters whose values make a pool and what happens to it."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    (rounds,) = settings["rounds"]
    return ((way, rounds, *drawn) for drawn in product(*(settings[name] for name in _DRAWN)) for way in WAYS)


def _solve(way: str, rounds: float, *drawn: float) -> Iterator[StudyRow]:
    case = dict(zip(_DRAWN, drawn, strict=True))
    yield {**case, **_row(way, JOBS, _clients(case), case, rounds=int(rounds))}


def _clients(case: Mapping[str, float]) -> list[PoolClient]:
    return clients_of(int(case["clients"]), case["best_percent"], case["transfer_s"], int(case["seed"]))


def _row(
    way: str,
    jobs: Sequence[RoundJob],
    clients: Sequence[PoolClient],
    case: Mapping[str, float],
    rounds: int = 1,
    parts: Sequence[RoundJob] = (),
) -> StudyRow:
    here, limit_s = WAYS[way], case["binding_limit_s"]
    policy, seed = POLICIES[here.policy], int(case["seed"])
    setting = RoundsSetting(policy, rounds, seed, here.choice, limit_s, here.queue, parts)
    result = run_rounds(jobs, clients, setting)
    return {
        "way": way,
        "utilisation": result.utilisation,
        "utilisation_used": result.utilisation_of_used,
        "bound_per_s": result.bound / result.ended_s,
        "bound_per_s_first": result.first_bound / result.first_ended_s,
        "completion_s": result.mean_completion_s,
        "failed_rounds": result.failed_rounds,
        "jobs_ended": sum(each is not None for each in result.completed_s),
    }


_OF_TRACE = (*_DRAWN, "round_s")


def _trace_cases(settings: StudySettings, source: str) -> Iterator[StudyCase]:
    (most,) = settings["jobs"]
    if not any(job.accelerators for job in islice(trace_of(source).jobs(), int(most))):
        raise UsageError("no job of the trace has accelerators", hint="take more of its jobs: --set jobs=N")
    return ((source, way, most, *drawn) for drawn in product(*(settings[each] for each in _OF_TRACE)) for way in WAYS)


def _solve_trace(source: str, way: str, most: float, *drawn: float) -> Iterator[StudyRow]:
    case = dict(zip(_OF_TRACE, drawn, strict=True))
    clients = _clients(case)
    jobs, too_large = trace_jobs(source, int(most), case)
    if jobs:
        counts = {"trace": json.loads(source)["checksum"], "jobs": len(jobs), "too_large": too_large}
        yield {**case, **counts, **_row(way, jobs, clients, case, parts=tier_parts(jobs, clients))}


def trace_jobs(source: str, most: int, case: Mapping[str, float]) -> tuple[list[RoundJob], int]:
    """The jobs of a trace that train in rounds, and how many more need more clients than the pool has."""
    rng = Random(f"{case['seed']} trace")  # noqa: S311 - a seed repeats the tiers
    found, too_large = [], 0
    for job in islice(trace_of(source).jobs(), most):
        tier, rounds = rng.choice(JOBS).tier, max(1, round(job.duration_s / case["round_s"]))
        if job.accelerators > case["clients"]:
            too_large += 1
        elif job.accelerators:
            found.append(RoundJob(job.accelerators, tier, 0, job.submit_s, rounds))
    return found, too_large


def tier_parts(jobs: Sequence[RoundJob], clients: Sequence[PoolClient]) -> list[RoundJob]:
    """What a partition divides the clients among: the tiers of the jobs, by the work of all jobs of each."""
    work = {tier: sum(each.needs * (each.rounds or 1) for each in jobs if each.tier == tier) for tier in _SPEEDS_MS}
    able = sum(each.tier > 0 for each in clients)
    return [RoundJob(0, tier, round(able * own / sum(work.values()))) for tier, own in work.items() if own]


_BASES = {
    STATIC: "a partition as in the repository",
    QUOTA: "a partition of 340 clients, others idle",
    SHARE: "a partition by chance in proportion",
    CHANCE: "clients that ask a job at random",
}
_COLUMNS = {
    "utilisation": {"utilisation": "all clients", "utilisation_used": "clients that worked"},
    "throughput": {"bound_per_s": "until the last job ends", "bound_per_s_first": "until the first job ends"},
    "completion": {"completion_s": "mean of the jobs"},
}


@dataclass(frozen=True, slots=True)
class _Form:
    """What is divided by what: a column, under the best of some ways, over that under a base."""

    column: str
    ways: tuple[str, ...]
    base: str
    words: str


def _forms(claim: str) -> Iterator[tuple[str, _Form]]:
    """By name, what the number of a claim may divide by what. Each but the first of a base differs in one thing."""
    (first, counted), *others = _COLUMNS[claim].items()
    for base, over in _BASES.items():
        yield base, _Form(first, (OWN,), base, f"policy scarce over {over}, {counted}")
        yield f"{base}-best", _Form(first, _SHARED, base, f"the best policy over {over}, {counted}")
        for column, others_counted in others:
            yield f"{base}-{column}", _Form(column, (OWN,), base, f"policy scarce over {over}, {others_counted}")


_LARGEST = "largest"


def _readings(claim: str) -> Iterator[tuple[str, _Form, int | None, str]]:
    """The name of a reading, its form, the size of the pool (``None``: that with the largest ratio), and its words.

    The claims say "up to", so the largest counts. The repository's partition shows at which sizes they would hold.
    """
    for name, form in _forms(claim):
        yield f"{name}-{_LARGEST}", form, None, f"{form.words}, pool size with the largest ratio"
        for pool in _POOLS if name == STATIC else ():
            yield f"{name}-{pool}", form, pool, f"{form.words}, {pool:,} clients"


def _ratios(rows: Sequence[StudyRow], form: _Form) -> Mapping[int, Sequence[float]]:
    """By the size of the pool: a ratio in each case in which all jobs end in both ways. A shorter time is better."""
    by_case: dict[tuple[float | str, ...], dict[str, float]] = {}
    for row in rows:
        if row["jobs_ended"] == len(JOBS):
            value = float(row[form.column])
            better = 1.0 / value if form.column == "completion_s" else value
            by_case.setdefault(tuple(row[name] for name in _DRAWN), {})[str(row["way"])] = better
    found: dict[int, list[float]] = {}
    for case, of in by_case.items():
        if form.base in of and (own := [of[way] for way in form.ways if way in of]):
            found.setdefault(int(case[0]), []).append(max(own) / of[form.base])
    return found


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    if not set(_POOLS) <= set(settings["clients"]) or "round_s" in settings:  # no source claims anything of a trace
        return {}
    found: dict[str, dict[str, ReadingValue]] = {}
    for claim in _COLUMNS:
        values = found.setdefault(f"sharing.{claim}", {})
        for name, form, pool, _ in _readings(claim):
            ratios = _ratios(rows, form)
            # Of the sizes, the one with the largest ratio on average.
            if own := max(ratios.values(), key=fmean, default=()) if pool is None else ratios.get(pool, ()):
                values[name] = range_value(own)
    return found


def of_trace(path: Path, mapping: Path | None) -> Study:
    """The study of the jobs of a file.

    Raises:
        UsageError: the file, or that of the mapping, cannot be read or is not valid.
    """
    source, inputs = trace_source(path, mapping)
    pool = [replace(each, default=each.quick or each.default) for each in STUDY.parameters if each.name != "rounds"]
    return replace(
        STUDY,
        parameters=(
            *pool,
            # A trace does not say what a round is.
            StudyParameter("round_s", "Seconds of a job for one round.", (60.0, 600.0), 1.0, 1e6, (600.0,)),
            StudyParameter("jobs", "The first so many jobs.", (100,), 1, 10_000, (20,), whole=True, several=False),
        ),
        claims=(),
        cases=partial(_trace_cases, source=source),
        solve=_solve_trace,
        inputs=inputs,
    )


_POOL = "clients of the pool"

STUDY = Study(
    name="sharing",
    question="What does sharing a pool gain over dividing it among jobs?",
    parameters=(
        StudyParameter("clients", "Sizes of the pool.", _POOLS, 100, 10_000, whole=True),
        StudyParameter("rounds", "Rounds of each job.", (100,), 1, 1000, (5,), whole=True, several=False),
        # The source's rates are not at hand.
        StudyParameter("transfer_s", "Seconds a client transfers in a round.", (0.0, 30.0), 0.0, 1000.0, (30.0,)),
        # The repository has 100 s, but the paper does not say so. A million is no limit.
        StudyParameter("binding_limit_s", "Seconds a round has to bind clients.", (100.0, 1e6), 10.0, 1e6, (1e6,)),
        StudyParameter("best_percent", "Clients that every job can use, in percent.", (_THREE_PERCENT,), 1.0, 74.0),
        StudyParameter("seed", "Seeds of the pool and of the order of the jobs.", (1,), 0, 1_000_000, whole=True),
    ),
    claims=tuple(
        Claim(f"sharing.{name}", _SOURCE, words, published, "times", 0.05, {key: of for key, *_, of in _readings(name)})
        for name, words, published in (
            ("utilisation", "higher utilisation of clients than other ways, up to", 1.88),
            ("throughput", "more clients bound in a second than in other ways, up to", 2.76),
            ("completion", "shorter time to the end of a job than in other ways, up to", 1.26),
        )
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("clients", ("utilisation",), _POOL, "time for which clients work\n(share of all time)", ("way",)),
        StudyPlot("clients", ("bound_per_s",), _POOL, "clients bound (1/s)", ("way",)),
        StudyPlot("clients", ("completion_s",), _POOL, "time to the end of a job (s)", ("way",)),
    ),
    of_trace=of_trace,
)
