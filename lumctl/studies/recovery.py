"""What of a published recovery is the fabric's part, and what is the restart of the job, by the published timeline.

Times on hardware are measured where the hardware is: ``lumctl demo recover`` prints the two figures of a recovery on
the simulator, which no study may start: the simulator is reached through its commands only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.studies.claim import Claim, ClaimBasis, exact_value
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_LUMION, _MORPHLUX = "arXiv 2505.23105", "arXiv 2508.03674v3"


@dataclass(frozen=True, slots=True)
class RecoveryPhase:
    """A part of a recovery: seconds from the failure to its end, and whether the fabric takes that time."""

    name: str
    ends_s: float
    fabric: bool = False


TIMELINE = (
    RecoveryPhase("circuits changed, job launched", 1.1, fabric=True),
    RecoveryPhase("NCCL synchronised", 4.5),
    RecoveryPhase("data set tokenised", 14.5),
    RecoveryPhase("model loaded", 16.6),
    RecoveryPhase("first training step done", 25.6),
)
"""Morphlux, Fig. 8c. The launch is a part of the first phase, so what the fabric takes is at most that."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    return ((fabric_s,) for fabric_s in settings["fabric_s"])


def _solve(fabric_s: float) -> Iterator[StudyRow]:
    published_s, now_s = 0.0, 0.0
    for phase in TIMELINE:
        seconds = fabric_s if phase.fabric else phase.ends_s - published_s
        now_s += seconds
        published_s = phase.ends_s
        yield {
            "fabric_s": fabric_s,
            "phase": phase.name,
            "part": "fabric" if phase.fabric else "restart",
            "seconds": seconds,
            "ends_s": now_s,
            "published_s": published_s,
            "times_faster": published_s / now_s,
        }


def _values(_: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    published = {str(row["phase"]): float(row["ends_s"]) for row in rows if row["fabric_s"] == TIMELINE[0].ends_s}
    if not published:
        return {}
    values = {name: exact_value(published[phase]) for name, (phase, _) in _READINGS.items()}
    return {"recovery.replacement": values, "recovery.restart": values}


_READINGS = {
    "circuits": (TIMELINE[0].name, "from the failure until circuits are changed and the job is launched"),
    "synchronised": (TIMELINE[1].name, "from the failure until the ranks are synchronised"),
    "training": (TIMELINE[-1].name, "from the failure until a training step is done"),
}
_WORDS = {name: f"{words}, by Morphlux's timeline" for name, (_, words) in _READINGS.items()}
_BED = (
    "the test bed, four servers with an RTX 6000 Ada each, joined by a programmable mesh"
    " (lumctl demo recover measures both figures on the simulator)"
)
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
        Claim(
            "recovery.throughput",
            _LUMION,
            "throughput of fine-tuning after a replacement, over that in an electrical rack",
            2.0,
            "times",
            0.1,
            missing=_RACK,
        ),
    ),
    columns=("fabric_s", "phase", "part", "seconds", "ends_s", "published_s", "times_faster"),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(StudyPlot("phase", ("ends_s",), "end of", "time since the failure (s)", ("fabric_s",)),),
)
