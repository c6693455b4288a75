"""Parse a probe's answer into readings and a verdict on the answer itself.

Error output appears between the lines of an answer, so warnings are expected before it. An answer is valid only if all
its parts were parsed: if it is truncated or damaged, missing parts prove nothing.
"""

from dataclasses import dataclass, replace

from lumctl.devices.formats.complaint import first_line, is_denial
from lumctl.devices.formats.ethtool import read_ethtool_module
from lumctl.devices.formats.lldp import neighbours_of, read_lldp
from lumctl.fleet.parsers.fields import is_harmless, said_in
from lumctl.fleet.parsers.host_log import of_jobs
from lumctl.fleet.parsers.kernel_log import KernelEvents, extended
from lumctl.fleet.parsers.nvidia_smi import SmiReport, parse_nvidia_smi
from lumctl.fleet.parsers.nvlink import (
    NvlinkAnswer,
    Place,
    parse_nvlink_errors,
    parse_nvlink_states,
    parse_nvlink_traffic,
    with_nvlink_rates,
)
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict, failure, read_at
from lumctl.fleet.readings import NvlinkReading, ProbeStatus

_NO_MODULE = ("operation not supported", "no module")
"""What ethtool prints for an empty cage. An input/output error means a module that does not answer."""
_CORRUPTED_INFOROM = 14
"""The exit status of nvidia-smi if the infoROM of a GPU is corrupted. Its output is still valid."""
_NO_OPTION = ("not recognized", "invalid combination", "unrecognized option", "please run 'nvidia-smi nvlink -h'")
_NO_NVLINK = ("unable to retrieve nvlink information", "not supported")


class GpuTaker:
    """``nvidia-smi -q -x``."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read an answer. If it was truncated, the readings before the cut are used."""
        report = parse_nvidia_smi(answer.text, taken_at, gathered.smi)
        gathered.gpus = with_nvlink_rates(report.gpus, gathered.nvlink_traffic, taken_at)
        gathered.lost_gpus = report.lost
        # Not ok: otherwise a GPU that is withheld from the list would count as lost.
        if report.withheld:
            said = first_line(report.withheld[0])
            return (ProbeStatus.DENIED if is_denial(said) else ProbeStatus.FAILED), said
        if answer.status == _CORRUPTED_INFOROM and not any(gpu.inforom_corrupted for gpu in report.gpus):
            return ProbeStatus.FAILED, "nvidia-smi reports a corrupted infoROM, but not of which GPU"
        if report.nameless:
            return ProbeStatus.FAILED, "nvidia-smi lists a GPU without its PCI address"
        return self._ended(answer, report)

    @staticmethod
    def _ended(answer: ProbeAnswer, report: SmiReport) -> Verdict:
        none_there = not report.gpus and "no devices were found" in answer.text.lower()
        # nvidia-smi names a lost GPU and then stops, without a list of the others. There is no more to come.
        if report.complete or none_there or (report.lost and not report.gpus):
            return OK
        if report.gpus or "<nvidia_smi_log" in answer.text:
            return ProbeStatus.FAILED, "the answer of nvidia-smi is truncated"
        return failure(answer, otherwise="nvidia-smi names no GPU")

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """Renew the time of the readings. This is rare, because an answer states its own time."""
        gathered.gpus = with_nvlink_rates(read_at(gathered.gpus, taken_at), gathered.nvlink_traffic, taken_at)


class Nvlink:
    """``nvidia-smi nvlink -s``."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the states, which replace the links. Links that are still listed keep their counters."""
        about, states = parse_nvlink_states(answer.text)
        verdict = _nvlink_verdict(answer, about)
        if verdict[0] is ProbeStatus.OK:
            known = {_place(link): link for link in gathered.nvlinks}
            gathered.nvlinks = tuple(
                replace(
                    known.get(place) or NvlinkReading(taken_at, *place),
                    taken_at=taken_at,
                    active=state.active,
                    speed_gb_s=state.speed_gb_s,
                )
                for place, state in states.items()
            )
        return verdict

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.nvlinks = read_at(gathered.nvlinks, taken_at)


class NvlinkErrorTaker:
    """``nvidia-smi nvlink -e``: the counters of the links whose states are known."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        about, errors = parse_nvlink_errors(answer.text)
        verdict = _nvlink_verdict(answer, about)
        if verdict[0] is ProbeStatus.OK:
            gathered.nvlinks = tuple(
                errors[_place(link)].told(link, taken_at) if _place(link) in errors else link
                for link in gathered.nvlinks
            )
        return verdict

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        gathered.nvlinks = tuple(
            link if link.errors_at is None else replace(link, errors_at=taken_at) for link in gathered.nvlinks
        )


class NvlinkTrafficTaker:
    """``nvidia-smi nvlink -gt d``: the traffic counters of the links, which give the GPUs' rates."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        about, counts = parse_nvlink_traffic(answer.text)
        verdict = _nvlink_verdict(answer, about)
        if verdict[0] is ProbeStatus.OK:
            gathered.nvlink_traffic = gathered.nvlink_traffic.followed_by(counts, taken_at)
            gathered.gpus = with_nvlink_rates(gathered.gpus, gathered.nvlink_traffic, taken_at)
        return verdict

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """Note that there was no traffic."""
        gathered.nvlink_traffic = gathered.nvlink_traffic.followed_by(gathered.nvlink_traffic.counts, taken_at)
        gathered.gpus = with_nvlink_rates(gathered.gpus, gathered.nvlink_traffic, taken_at)


def _place(link: NvlinkReading) -> Place:
    return link.index, link.uuid, link.link


def _nvlink_verdict(answer: ProbeAnswer, about: NvlinkAnswer) -> Verdict:
    text = answer.text.lower()
    if about.unread is not None:
        return ProbeStatus.FAILED, first_line(f"nvidia-smi reports of a link: {about.unread}")
    if about.gpus or "no devices were found" in text:
        return OK
    if any(words in text for words in (*_NO_OPTION, *_NO_NVLINK)):
        return ProbeStatus.ABSENT, said_in(answer.text)
    if answer.status == 0 and is_harmless(answer.text):
        return ProbeStatus.ABSENT, "no GPU here has NVLink"
    return failure(answer, otherwise="nvidia-smi names no GPU")


class Kernel:
    """``dmesg``: the host sends the matching lines at first, and then only new ones.

    Error messages appear between the lines, even if they do not match, and some versions of dmesg still exit with 0:
    the words also count.
    """

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """Read the log. A whole answer replaces earlier events: the host may have dropped old lines, or restarted."""
        # A failed answer may hold events before its failure. It does not remove the events of earlier answers.
        before = gathered.kernel if answer.appended or answer.status != 0 else KernelEvents()
        events = extended(before, answer.text, booted_at=gathered.booted_at)
        nothing = events.lines == before.lines and not is_harmless(answer.text)
        if not nothing:
            # Which process used a GPU is known only now: the process is gone when the GPU is read again.
            events = replace(events, host=of_jobs(events.host, gathered.gpus))
            gathered.kernel = events
            gathered.xids, gathered.sxids, gathered.nic_events = events.all_xids, events.sxids, events.nics
            gathered.host_events = events.host
        if nothing or answer.status != 0:
            return failure(answer, otherwise=f"dmesg printed no kernel log: {first_line(answer.text)}")
        if events.unread is not None:
            return ProbeStatus.FAILED, first_line(f"the kernel log has an unreadable line: {events.unread}")
        return OK

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: events have their own times."""


class Lldp:
    """``lldpctl -f json``."""

    def take(self, answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """Read the neighbours, with their ages at the time of this answer."""
        document = read_lldp(answer.text)
        if answer.status != 0 or document is None:
            return failure(answer, otherwise="lldpctl prints no JSON")
        gathered.neighbours = neighbours_of(document)
        return OK

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: neighbours have ages instead of times, and the ages are the same."""


@dataclass(frozen=True, slots=True)
class Optics:
    """``ethtool -m`` of one interface."""

    interface: str

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the module. An empty cage is a valid answer, and the earlier reading of its module is dropped."""
        if answer.status != 0:
            status, detail = failure(answer)
            if status is ProbeStatus.FAILED and any(words in detail.lower() for words in _NO_MODULE):
                gathered.optics = {name: seen for name, seen in gathered.optics.items() if name != self.interface}
                return ProbeStatus.OK, detail
            return status, detail
        module = read_ethtool_module(answer.text, taken_at)
        if module.reading is None:
            return failure(answer, otherwise="ethtool printed no module")
        gathered.optics = {**gathered.optics, self.interface: module.reading}
        if module.unread is not None:
            return ProbeStatus.FAILED, first_line(f"a value of the module is unreadable: {module.unread}")
        return OK

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        reading = gathered.optics.get(self.interface)
        if reading is not None:
            gathered.optics = {**gathered.optics, self.interface: replace(reading, taken_at=taken_at)}
