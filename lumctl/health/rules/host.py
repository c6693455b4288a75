"""Faults of a host itself, or of reading it. The components of an unread host are unknown, without own findings."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from lumctl.errors import is_unresolved
from lumctl.fleet.readings import NicEventKind, ProbeOutcome, ProbeStatus, SxidEvent
from lumctl.health.events import clear_hint, count_text, earliest_at
from lumctl.health.rulebook import QUOTED, found, rulebook, verdict
from lumctl.health.rules import counters, machine
from lumctl.health.rules.cases import HostCase
from lumctl.health.rules.xid import action_of
from lumctl.health.states import SEVERITY, Finding, State, Verdict
from lumctl.inventory.exporters import EXPORTER_KINDS
from lumctl.inventory.model import NVIDIA_SMI

_GRAVE = frozenset(
    {
        NicEventKind.FATAL,
        NicEventKind.PCIE,
        NicEventKind.TEMPERATURE,
        NicEventKind.CABLE_ERROR,
        NicEventKind.COMMAND,
        NicEventKind.QUEUE,
    }
)
"""The kinds of lines that are a fault even if the card is not in the inventory."""
LOSES_SIGHT_OF = {
    "gpu": "its accelerators are not read",
    "nvlink": "NVLink errors are not read",
    "kernel": "XIDs and other errors of its accelerators cannot be seen",
    "net": "its links are not read",
    "counters": "the counters of its ports are not read",
    "lldp": "which transmitters its receivers hear is not read",
    "optics": "the light power at its receivers is not read",
    "mounts": "its file systems are not read",
    "disks": "the free space of its disks is not read",
    "services": "whether its fabric manager runs is not read",
    "dcgm": "its GPUs are not read",
    "amd": "its GPUs are not read",
    "node": "its links and file systems are not read",
    "gpud": "what it reports is not read",
    "shell": "its kernel log and its modules are not read",
}
"""The data that are missing for a host while a probe fails, by the part of the probe's name before the colon."""


_LINES_OF = {NVIDIA_SMI: "XIDs"}


def session(case: HostCase) -> Iterator[Finding]:
    """No session to the host, or no new reading from it."""
    if case.seen is None:
        yield found(case.id, "host.unread", "never", "it was never read", since=case.read_at)
    elif case.stale is not None:
        yield found(case.id, "host.unread", "stale", case.stale, since=case.read_at)
    elif case.seen.reachable:
        return
    elif case.seen.awaited and case.seen.error is None:
        yield found(case.id, "host.unread", "never", "the first connection to it is being made", since=case.read_at)
    elif case.seen.host_key_problem:
        # Before the missed attempts are counted: to try again does not change a key.
        yield found(case.id, "host.unreachable", "host-key", case.seen.error or "no session", since=case.read_at)
    elif case.lost or not 0 < case.seen.attempts < verdict("host.missed", "missed").limit:
        # Without a count of attempts the host was read once, just now, and did not answer.
        evidence = case.seen.error or ("no exporter answers" if case.by_exporters else "no session")
        kind = "no-exporter" if case.by_exporters else "no-session"
        kind = "no-name" if is_unresolved(evidence) else kind
        yield found(case.id, "host.unreachable", kind, evidence, since=case.read_at)
    else:
        line = verdict("host.missed", "missed")
        evidence = f"missed {case.seen.attempts} of {line.limit:g} times: {case.seen.error or 'no session'}"
        yield found(case.id, "host.missed", "missed", evidence, since=case.read_at)


def too_slow(case: HostCase) -> Iterator[Finding]:
    """No probe ended in time: a finding about the host, because nothing points at one part of it."""
    if _too_slow(case):
        evidence = "answers too slowly: none of its probes ended in time"
        yield found(case.id, "host.too-slow", "timed-out", evidence, since=case.read_at)


def driver_hung(case: HostCase) -> Iterator[Finding]:
    """The GPU probe does not end while other probes do: a finding about the driver, not about the host."""
    outcome = _probe(case, "gpu")
    if outcome is not None and outcome.status is ProbeStatus.TIMED_OUT and not _too_slow(case):
        evidence = f"driver does not answer: {case.probe} exceeded its deadline ({outcome.seconds:.1f} s)"
        yield found(case.id, "host.driver-hung", "timed-out", evidence, since=outcome.taken_at)


def no_gpus(case: HostCase) -> Iterator[Finding]:
    """The driver runs and finds no GPU, on a host without accelerators in the inventory.

    If the inventory has accelerators on the host, they are reported as lost instead.
    """
    outcome = _probe(case, "gpu")
    if case.seen is None or outcome is None or outcome.status is not ProbeStatus.OK or "gpu" in case.needed:
        return
    if not case.seen.gpus and not case.seen.lost_gpus:
        yield found(case.id, "host.no-gpus", "none-found", f"{case.probe} finds no GPU", since=outcome.taken_at)


def kernel_log_denied(case: HostCase) -> Iterator[Finding]:
    """The kernel log may not be read, so XIDs and other errors of the accelerators are not seen."""
    outcome = _probe(case, "kernel")
    if outcome is not None and "kernel" in case.needed and outcome.status is ProbeStatus.DENIED:
        evidence = f"the kernel log may not be read: {_LINES_OF.get(case.probe, 'errors of its GPUs')} cannot be seen"
        yield found(case.id, "host.kernel-log-denied", "denied", evidence, since=outcome.taken_at)


_NVLINK = ("nvlink", "nvlink:errors", "nvlink:traffic")


def probes(case: HostCase) -> Iterator[Finding]:
    """Other probes that failed: one finding for each kind of failure."""
    if _too_slow(case):
        return
    told_elsewhere = {("gpu", ProbeStatus.TIMED_OUT), ("kernel", ProbeStatus.DENIED)}
    gpu = _probe(case, "gpu")
    if gpu is not None and gpu.status is ProbeStatus.TIMED_OUT:
        # The NVLink probes ask the same driver, one after the other.
        told_elsewhere |= {(name, ProbeStatus.TIMED_OUT) for name in _NVLINK}
    if machine.driver_unusable(gpu) is not None:
        told_elsewhere |= {(name, ProbeStatus.FAILED) for name in ("gpu", *_NVLINK)}
    ended: dict[str, list[ProbeOutcome]] = {}
    for outcome in _probes(case):
        harmless = outcome.status is ProbeStatus.OK or (
            outcome.status in {ProbeStatus.ABSENT, ProbeStatus.NOT_ASKED} and outcome.probe not in case.needed
        )
        if not harmless and (outcome.probe, outcome.status) not in told_elsewhere:
            ended.setdefault(_ending(outcome), []).append(outcome)
    for ending, outcomes in ended.items():
        evidence = f"probe {outcomes[0].status.value}: " + "; ".join(_accounts(outcomes))
        yield found(case.id, "host.probe-failed", ending, evidence, since=outcomes[0].taken_at)


def _ending(outcome: ProbeOutcome) -> str:
    """The case of host.probe-failed for an outcome."""
    return "exporter" if outcome.probe in EXPORTER_KINDS else outcome.status.value


def reported(case: HostCase) -> Iterator[Finding]:
    """Faults of the host that another program on it reports."""
    yield from counters.reported(case.id, "host.reported", case.reports)


def stray_xids(case: HostCase) -> Iterator[Finding]:
    """XIDs that mean a fault and belong to no component: they must not be dropped silently."""
    grave = {
        (event.xid, event.pci): event
        for event in case.stray_xids
        if verdict("gpu.xid", action_of(event)).state is not State.OK
    }
    if grave:
        named = ", ".join(f"XID {xid} at {pci}" for xid, pci in grave)
        evidence = f"{named}, but the inventory has no accelerator there"
        if case.without_slot:
            whose, plural = " or ".join(case.without_slot), len(case.without_slot) > 1
            evidence = f"{named}: perhaps of {whose}, whose PCI {'addresses are' if plural else 'address is'} not known"
        finding = found(case.id, "host.xid-unmatched", "nobody", evidence, since=case.read_at)
        lasting = [event for event in grave.values() if verdict("gpu.xid", action_of(event)).ends != "age"]
        yield replace(finding, advice=finding.advice + clear_hint(case.id, "reset", lasting, case.events))


def stray_events(case: HostCase) -> Iterator[Finding]:
    """Kernel lines that a probe plug-in reads and that name no accelerator of the inventory."""
    if case.stray_events:
        last = case.stray_events[-1]
        more = f", {len(case.stray_events)} lines" if len(case.stray_events) > 1 else ""
        since = earliest_at(case.stray_events, default=case.read_at)
        yield found(case.id, "host.gpu-event", "unmatched", f"{last.kind}: {last.text[:QUOTED]}{more}", since=since)


def nvswitch(case: HostCase) -> Iterator[Finding]:
    """SXids: errors of the NVSwitches, which belong to no GPU."""
    for line in rulebook().lines("host.nvswitch"):
        name = line.case
        events = [event for event in _sxids(case, line) if sxid_case(event) == name]
        if events:
            numbers = ", ".join(str(number) for number in dict.fromkeys(event.sxid for event in events))
            evidence = f"SXid {numbers} at {events[-1].pci}{count_text(events, case.events)}"
            since = earliest_at(events, default=case.read_at)
            finding = found(case.id, "host.nvswitch", name, evidence, since=since)
            yield replace(finding, advice=finding.advice + clear_hint(case.id, line.ends, events, case.events))


_SAID = {True: "fatal", None: "not-said", False: "non-fatal"}
"""The cases of host.nvswitch by the severity in the text of a line."""


def sxid_case(event: SxidEvent) -> str:
    """The case of host.nvswitch for a line: the worse of its own severity and the catalogue's."""
    said, listed = _SAID[event.fatal], rulebook().sxid_cases.get(event.sxid)
    if listed is None or (event.fatal is None and listed == "non-fatal"):
        return listed or said
    return max((listed, said), key=lambda name: SEVERITY.index(verdict("host.nvswitch", name).state))


def _sxids(case: HostCase, line: Verdict) -> Iterator[SxidEvent]:
    """The SXids of a host that may count: age and work on the host do not end SXids that need a restart."""
    lasting = line.ends != "age" and case.events is not None
    # What was logged before work on the host ended is a consequence of the work.
    oldest = max(case.now - line.window_s, case.quiet_until)
    for event in case.seen.sxids if case.seen is not None and case.readable else ():
        if lasting or event.at is None or event.at > oldest:
            yield event


def nameless_nic(case: HostCase) -> Iterator[Finding]:
    """Network drivers' lines about a card that belongs to no link of the inventory.

    Lines about ports without a module do not count: every boot logs them.
    """
    line = verdict("host.nic", "nameless")
    oldest = max(case.now - line.window_s, case.quiet_until)
    events = [event for event in case.nic_events if event.kind in _GRAVE and (event.at is None or event.at > oldest)]
    if events:
        since = earliest_at(events, default=case.read_at)
        name = f"{events[-1].interface}: " if events[-1].interface else ""
        yield found(case.id, "host.nic", "nameless", f"{name}{events[-1].text[:QUOTED]}", since=since)


def _probes(case: HostCase) -> Collection[ProbeOutcome]:
    return case.seen.probes.values() if case.seen is not None and case.readable else ()


def _probe(case: HostCase, name: str) -> ProbeOutcome | None:
    return next((outcome for outcome in _probes(case) if outcome.probe == name), None)


def _too_slow(case: HostCase) -> bool:
    outcomes = _probes(case)
    return bool(outcomes) and all(outcome.status is ProbeStatus.TIMED_OUT for outcome in outcomes)


def _accounts(outcomes: Collection[ProbeOutcome]) -> Iterator[str]:
    """Each message once, with the names of the probes that reported it."""
    alike: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        alike.setdefault((outcome.probe.partition(":")[0], outcome.detail), []).append(outcome.probe)
    for (kind, detail), names in alike.items():
        said = f" ({detail})" if detail else ""
        blind = f", {LOSES_SIGHT_OF[kind]}" if kind in LOSES_SIGHT_OF else ""
        yield f"{', '.join(names)}{said}{blind}"


RULES = (
    session,
    too_slow,
    driver_hung,
    no_gpus,
    kernel_log_denied,
    probes,
    stray_xids,
    stray_events,
    nvswitch,
    nameless_nic,
    reported,
    *machine.RULES,
)
