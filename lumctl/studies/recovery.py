"""What of a published recovery is the fabric's part, and what is the restart of the job; and beside it, measured ones.

Times on hardware are measured where the hardware is, and no study may start the simulator. ``--measured FILE`` reads
what was measured: the recovery of ``lumctl demo recover -o json``, or the bandwidths before and after a swap of
``tests/bench/jobs/bandwidth.py --out``. Their rows have the machine, the date, and what is not comparable.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.studies.claim import Claim, ClaimBasis, exact_value
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.training.timeline import MORPHLUX, Track

_LUMION, _MORPHLUX = "arXiv 2505.23105", "arXiv 2508.03674v3"
_SOURCE = "Morphlux"
_COLUMNS = (
    *("source", "machine", "date", "fabric_s", "phase", "part", "seconds", "ends_s", "published_s", "times"),
    *("published_times", "not_comparable"),
)
_EMPTY: StudyRow = dict.fromkeys(_COLUMNS, "-")
"""A row with nothing in its columns."""


def _cases(settings: StudySettings, measured: Sequence[str] = ()) -> Iterator[StudyCase]:
    yield from ((fabric_s, "") for fabric_s in settings["fabric_s"])
    yield from ((0.0, rows) for rows in measured)


def _solve(fabric_s: float, measured: str) -> Iterator[StudyRow]:
    """The published timeline with a fabric that takes some time, or rows that were measured, as JSON."""
    if measured:
        yield from json.loads(measured)
        return
    now_s = 0.0
    for span in MORPHLUX.spans():
        # The launch of the job is a part of the first phase, so what the fabric takes is at most that.
        is_fabric = span.track is Track.SWAP
        seconds = fabric_s if is_fabric else span.ends_s - span.starts_s
        now_s += seconds
        yield {
            **_EMPTY,
            "source": _SOURCE,
            "fabric_s": fabric_s,
            "phase": span.title,
            "part": "fabric" if is_fabric else "restart",
            "seconds": seconds,
            "ends_s": now_s,
            "published_s": span.ends_s,
            "times": span.ends_s / now_s,
        }


def of_measured(paths: Sequence[Path]) -> Study:
    """The study with what files say that was measured.

    Raises:
        UsageError: a file cannot be read, or is not what a measurement wrote.
    """
    rows = tuple(json.dumps(_measured_rows(path)) for path in paths)
    inputs = {"measured": sha256("\n".join(rows).encode()).hexdigest()}
    return replace(STUDY, cases=partial(_cases, measured=rows), inputs=inputs)


def _measured_rows(path: Path) -> list[StudyRow]:
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in _KINDS:
        hint = "make one: lumctl demo recover -o json > FILE"
        raise UsageError(f"{path} has no measurement: its schema is {schema!r}", hint=hint)
    try:
        return list(_KINDS[schema](document))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError) as error:
        raise UsageError(f"{path} is no complete measurement of {schema}: {error!r}") from error


def _recovery_rows(document: Mapping[str, Any]) -> Iterator[StudyRow]:
    """The activities of a measured recovery; those of several tracks run at the same time."""
    published = {"verify": MORPHLUX.failure_to_circuits_s, "step": MORPHLUX.failure_to_step_s}
    circuits_s = document["failure_to_circuits_s"]
    about = {
        **_EMPTY,
        "source": "demo recover",
        "machine": str(document["machine"]),
        "date": datetime.fromtimestamp(_number(document["t0"]), UTC).date().isoformat(),
        "fabric_s": "-" if circuits_s is None else _number(circuits_s),
        "not_comparable": "simulated GPUs, hosts and light; processes on standby; a small model; one machine",
    }
    for span in document["spans"]:
        starts_s, ends_s = _number(span["starts_s"]), _number(span["ends_s"])
        # A ratio to what is published would say nothing: the two are not comparable.
        yield {
            **about,
            "phase": str(span["title"]),
            "part": "fabric" if span["lane"] == Track.SWAP else "restart",
            "seconds": ends_s - starts_s,
            "ends_s": ends_s,
            "published_s": published.get(span["name"], "-"),
        }


def _bandwidth_rows(document: Mapping[str, Any]) -> Iterator[StudyRow]:
    """Bandwidth after a swap by light, over that of an electrical rack's detour."""
    for figure in document["figures"]:
        low, high = map(_number, figure["published"])
        yield {
            **_EMPTY,
            "source": "bandwidth bench",
            "machine": str(document["machine"]),
            "date": str(document["date"]),
            "phase": f"{figure['name']}, after a swap, to that over a detour",
            "part": "bandwidth",
            "times": _number(figure["swap_mbps"]) / _number(figure["detour_mbps"]),
            "published_times": f"{low:g} to {high:g}" if low < high else f"{low:g}",
            "not_comparable": "simulated lanes, forwarding without cost; no training",
        }


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isfinite(value) or value < 0:
        raise ValueError(f"{value} where a number of 0 or more is expected")
    return float(value)


_KINDS = {"lumctl/demo-recover/v1": _recovery_rows, "lumctl/bandwidth-bench/v1": _bandwidth_rows}


def _values(_: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    spans = MORPHLUX.spans()
    published = {
        str(row["phase"]): float(row["ends_s"])
        for row in rows
        if row["source"] == _SOURCE and row["fabric_s"] == MORPHLUX.failure_to_circuits_s
    }
    if not published:
        return {}
    values = {name: exact_value(published[spans[at].title]) for name, (at, _) in _READINGS.items()}
    return {"recovery.replacement": values, "recovery.restart": values}


_READINGS = {
    "circuits": (0, "from the failure until circuits are changed and the job is launched"),
    "synchronised": (1, "from the failure until the ranks are synchronised"),
    "training": (-1, "from the failure until a training step is done"),
}
_WORDS = {name: f"{words}, by Morphlux's timeline" for name, (_, words) in _READINGS.items()}
_BED = (
    "the test bed, four servers with an RTX 6000 Ada each, joined by a programmable mesh"
    " (lumctl demo recover measures both figures on the simulator)"
)
_THROUGHPUT = "throughput of fine-tuning after a replacement, over that in an electrical rack"
_RACK = "an electrical rack after a replacement, which the source does not describe, and the test bed beside it"

STUDY = Study(
    name="recovery",
    question="How much of a recovery is the fabric, and how much the restart of the job?",
    parameters=(
        StudyParameter("fabric_s", "Seconds from a failure to changed circuits.", (1.1, 0.1, 0.001), 1e-6, 3600.0),
    ),
    claims=(
        # Both this number and the timeline are rounded to tenths of a second.
        Claim("recovery.replacement", _MORPHLUX, "replacement of a chip", 1.2, "s", 0.1, _WORDS, ClaimBasis.COMPUTED),
        # The source says "about", and gives no timeline of its own.
        Claim("recovery.restart", _LUMION, "swap and restart, about", 1.0, "s", 0.5, _WORDS, ClaimBasis.INFERRED),
        Claim("recovery.circuits", _MORPHLUX, "from a failure to changed circuits", 1.1, "s", 0.1, missing=_BED),
        Claim("recovery.training", _MORPHLUX, "from a failure to a training step", 25.6, "s", 0.5, missing=_BED),
        Claim("recovery.throughput", _LUMION, _THROUGHPUT, 2.0, "times", 0.1, missing=_RACK),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(StudyPlot("phase", ("ends_s",), "end of", "time since the failure (s)", ("source", "fabric_s")),),
    of_measured=of_measured,
)
