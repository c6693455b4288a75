"""Exporters as probes: each page is one probe of a host, with the parser for its kind of exporter."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from lumctl.fleet.exporters.amd import Amd
from lumctl.fleet.exporters.dcgm import Dcgm
from lumctl.fleet.exporters.gpud import Gpud
from lumctl.fleet.exporters.node import NodeExporterReader
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeOutcome, ProbeStatus
from lumctl.inventory.exporters import EXPORTER_KINDS
from lumctl.inventory.probe_times import PROBE_TIMES, ProbeTimes


class PageParser(Protocol):
    """Reads the pages of one kind of exporter."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read a page; if it is not valid, older readings stay and age."""


ANSWERS: Mapping[str, frozenset[str]] = {
    "dcgm": frozenset({"gpu"}),
    "node": frozenset({"net", "infiniband", "counters", "mounts", "disks", "clock"}),
    "amd": frozenset({"gpu"}),
    "gpud": frozenset(),
}
"""The shell's probes that a page of each kind can replace."""


def exporter_probes(
    urls: Mapping[str, str],
    *,
    interfaces: Collection[str] | None = None,
    mounts: Collection[str] = (),
    times: Mapping[str, ProbeTimes] = PROBE_TIMES,
) -> tuple[Probe, ...]:
    """The probes of a host's exporters, by their kinds and URLs."""
    parsers: dict[str, PageParser] = {
        "dcgm": Dcgm(),
        "node": NodeExporterReader(interfaces, mounts),
        "amd": Amd(),
        "gpud": Gpud(),
    }
    return tuple(
        Probe(kind, kind, f"get {url}", times[kind].deadline_s, times[kind].every_s, parsers[kind].take, _read_whole)
        for kind, url in urls.items()
    )


def _read_whole(_taken_at: float, _gathered: Gathered) -> None:
    """Do nothing, because a page is read whole each time."""


def answered_probes(
    pages: Mapping[str, ProbeOutcome], gathered: Gathered, shell_probes: Iterable[str], now: float
) -> dict[str, ProbeOutcome]:
    """The outcomes of the shell's probes that pages replace; ``pages`` are by kind.

    Probes that no exporter of the host can replace are ``not-asked``. Probes that a failed exporter replaces are left
    out, because the exporter's own outcome has the reason.
    """
    found: dict[str, ProbeOutcome] = {}
    for kind, page in pages.items():
        for probe in gathered.answered.get(kind, ()) if page.status is ProbeStatus.OK else ():
            found[probe] = ProbeOutcome(probe, ProbeStatus.OK, page.taken_at, page.seconds)
    for probe in shell_probes:
        asked = [kind for kind in pages if probe in ANSWERS[kind]]
        if probe in found or any(pages[kind].status is not ProbeStatus.OK for kind in asked):
            continue
        programs = " and ".join(EXPORTER_KINDS[kind].program for kind in asked or pages)
        found[probe] = ProbeOutcome(probe, ProbeStatus.NOT_ASKED, now, 0.0, f"{programs} does not report it")
    return found
