"""The displayed parts of one component: headed lists of label and text, and readings."""

import math
from dataclasses import dataclass

from lumctl.fleet.readings import GpuProcess
from lumctl.health.states import Finding, State
from lumctl.tui.views.readings import Reading

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its facts, each a label and a text, and with readings that have a history.

    A reading older than ``stale_after_s`` is too old to rely on. ``processes`` share ``memory_mib``, if that is known.
    """

    heading: str
    facts: tuple[Fact, ...]
    readings: tuple[Reading, ...] = ()
    stale_after_s: float = math.inf
    processes: tuple[GpuProcess, ...] = ()
    memory_mib: float | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """One component: its kind, state, findings and readings; ``maintenance`` if it is being worked on."""

    id: str
    kind: str
    state: State
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]
    maintenance: str | None = None
    acknowledgements: tuple[str, ...] = ()
    """Who has acknowledged its findings, why, and which findings each acknowledgement covers."""
