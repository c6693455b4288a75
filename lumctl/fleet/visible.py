"""Which of the gathered readings a snapshot shows."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from lumctl.fleet.probe_output import Gathered
from lumctl.fleet.readings import ProbeOutcome, ProbeStatus


def visible(gathered: Gathered, outcomes: Mapping[str, ProbeOutcome], since: float | None) -> dict[str, Any]:
    """The reading fields of a snapshot.

    Who asked for a reading now is shown none from before: it may be from before a change that is to be verified.
    Neighbours bear ages and no time, so they are shown only where the table itself was read well. Events of the
    kernel's log bear their own times and stay.
    """
    shown: dict[str, Any] = {
        "gpus": gathered.gpus,
        "lost_gpus": gathered.lost_gpus,
        "nvlinks": gathered.nvlinks,
        "xids": gathered.xids,
        "sxids": gathered.sxids,
        "nic_events": gathered.nic_events,
        "host_events": gathered.host_events,
        "accelerator_events": gathered.accelerator_events,
        "mounts": gathered.mounts,
        "disks": gathered.disks,
        "clock": gathered.clock,
        "crashes": gathered.crashes,
        "fabric_errors": gathered.fabric_errors,
        "services": gathered.services,
        "capacity": gathered.capacity,
        "adapters": gathered.adapters,
        "interfaces": gathered.interfaces,
        "infiniband": gathered.infiniband,
        "counters": gathered.counters,
        "optics": gathered.optics,
        "neighbours": gathered.neighbours,
        "reports": tuple(chain.from_iterable(gathered.reports.values())) if gathered.reports else (),
    }
    lldp = outcomes.get("lldp")
    if lldp is None or lldp.status is not ProbeStatus.OK or (since is not None and lldp.taken_at < since):
        shown["neighbours"] = {}
    if since is not None:
        for name in ("gpus", "nvlinks", "infiniband", "reports"):
            if shown[name]:
                shown[name] = tuple(reading for reading in shown[name] if reading.taken_at >= since)
        for name in ("interfaces", "counters", "optics"):
            if shown[name]:
                shown[name] = {key: reading for key, reading in shown[name].items() if reading.taken_at >= since}
        for name in ("mounts", "disks", "clock", "services", "capacity"):
            if shown[name] is not None and shown[name].taken_at < since:
                shown[name] = None
        gpu = outcomes.get("gpu")
        if gpu is None or gpu.taken_at < since:
            shown["lost_gpus"] = ()
    return shown
