"""The data of the dashboard: one observation of the racks, and the records of their stores. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.health.observation import Observation
from lumctl.store import StoredRun


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log: time (seconds since the epoch), rack, source, and text.

    ``run`` is its run, ``component`` its component, if there is one.
    """

    at: float
    rack: str
    who: str
    text: str
    grave: bool = False
    run: str | None = None
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Working:
    """A job that lumctl runs, as its coordinator reports it; ``None`` if there is no report.

    ``document`` is the output of ``job status -o json``.
    """

    job: str
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The content of the racks' stores, each newest first.

    ``autopilots`` are the documents of ``autopilot status``, one for each rack; ``trouble`` is why a store could not
    be read; the rest is then from the last successful read. ``stores`` are the places of the racks' stores, without
    passwords; ``watched``: a daemon answers here, ``None`` if that was not checked.
    """

    runs: tuple[StoredRun, ...] = ()
    autopilots: tuple[Mapping[str, Any], ...] = ()
    working: tuple[Working, ...] = ()
    log: tuple[Line, ...] = ()
    trouble: str | None = None
    stores: Mapping[str, str] = field(default_factory=dict)
    watched: bool | None = None


@dataclass(frozen=True, slots=True)
class RecordedLook:
    """One look and the records of that moment.

    ``forbidden`` is why no key may change anything here; empty where one may.
    """

    observation: Observation
    records: Records = Records()
    forbidden: str = ""
