"""What the dashboard shows: one look at the racks, and what their stores tell beside it. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.health.observation import Observation
from lumctl.store import StoredRun


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log: when (seconds since the epoch), in which rack, who or what said it, and what.

    ``run`` is the run that it is of, ``component`` the component that it tells of, if there is one.
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
    """A job that lumctl runs, as its coordinator tells of it; ``None`` where nobody does.

    ``document`` is what ``job status -o json`` prints of it.
    """

    job: str
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """What the stores of the racks hold, each of them newest first.

    ``autopilots`` are the documents of ``autopilot status``, one for each rack; ``trouble`` says why a store could not
    be read, and the rest is then what was read last. ``stores`` is where each rack's store is, without a password;
    ``watched`` whether a daemon answers here, ``None`` where nobody asked.
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
