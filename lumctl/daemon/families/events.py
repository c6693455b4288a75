"""What kernel logs tell: how many lines are known of each host's log, and when each code was last seen.

The numbers are gauges, for the log forgets and so do we. They are there from zero on, so that the first event of all is
seen to come; a code has a series once it came.
"""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import gauge
from lumctl.daemon.families.readable import Readable
from lumctl.fleet.readings import HostSnapshot, NicEventKind, ProbeStatus
from lumctl.health.matching import addresses, pci_slot

_FATAL = {True: "true", False: "false", None: "unknown"}

Latest = dict[tuple[str, ...], float]


def events(readable: Readable) -> Iterator[Metric]:
    """XIDs by accelerator, where it is known; SXids and what network drivers say by host."""
    target = readable.target
    xids = gauge("host_xid_events", "XID lines that are known of a host's kernel log.", ["host"])
    sxids = gauge("host_sxid_events", "SXid lines that are known of a host's kernel log.", ["host", "fatal"])
    nics = gauge("host_nic_events", "Lines of network drivers that are known of it.", ["host", "event"])
    xid_at: Latest = {}
    sxid_at: Latest = {}
    for name, host in readable.hosts.items():
        kernel = host.probes.get("kernel")
        if kernel is None or kernel.status is not ProbeStatus.OK:
            continue
        xids.add_metric([target, name], len(host.xids))
        weights = Counter(event.fatal for event in host.sxids)
        for fatal, word in _FATAL.items():
            sxids.add_metric([target, name, word], weights[fatal])
        kinds = Counter(event.kind for event in host.nic_events)
        for kind in NicEventKind:
            nics.add_metric([target, name, kind.value], kinds[kind])
        owners = _owners(readable, name, host)
        for xid in host.xids:
            _note(xid_at, (name, owners.get(pci_slot(xid.pci), ""), str(xid.xid)), xid.at)
        for sxid in host.sxids:
            _note(sxid_at, (name, str(sxid.sxid)), sxid.at)
    yield xids
    yield sxids
    yield nics
    yield _times("xid_timestamp_seconds", "When an XID was last logged.", ["host", "id", "xid"], target, xid_at)
    yield _times("sxid_timestamp_seconds", "When an SXid was last logged.", ["host", "sxid"], target, sxid_at)


def _owners(readable: Readable, name: str, host: HostSnapshot) -> dict[str, str]:
    """The accelerator in each PCI slot."""
    slots = addresses(readable.look.inventory.accelerators_of(name), readable.matched(name), host)
    return {slot: accelerator for accelerator, slot in slots.items()}


def _note(latest: Latest, series: tuple[str, ...], at: float | None) -> None:
    if at is not None:
        latest[series] = max(at, latest.get(series, at))


def _times(name: str, text: str, labels: list[str], target: str, latest: Latest) -> Metric:
    family = gauge(name, text, labels)
    for series, at in latest.items():
        family.add_metric([target, *series], at)
    return family
