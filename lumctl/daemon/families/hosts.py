"""Whether hosts answer, when they started, and how their probes fare."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import gauge
from lumctl.fleet.readings import ProbeStatus
from lumctl.site.observation import Observation

_WELL = frozenset({ProbeStatus.OK, ProbeStatus.ABSENT})


def hosts(look: Observation) -> Iterator[Metric]:
    """Of a host that cannot be reached only that it cannot."""
    up = gauge("host_up", "Whether a host could be reached (1) or not (0).", ["host"])
    booted = gauge("host_boot_timestamp_seconds", "When a host started.", ["host"])
    labels = ["host", "probe"]
    well = gauge("probe_success", "Whether all probes of a kind brought an answer (1) or not (0).", labels)
    took = gauge("probe_duration_seconds", "How long the slowest probe of a kind took when it last ended.", labels)
    for name, host in look.snapshot.hosts.items():
        up.add_metric([look.target, name], float(host.reachable))
        if not host.reachable:
            continue
        if host.booted_at is not None:
            booted.add_metric([look.target, name], host.booted_at)
        kinds: dict[str, tuple[bool, float]] = {}
        for outcome in host.probes.values():
            if outcome.status is ProbeStatus.NOT_ASKED:
                continue
            kind = outcome.probe.partition(":")[0]
            success, seconds = kinds.get(kind, (True, 0.0))
            kinds[kind] = (success and outcome.status in _WELL, max(seconds, outcome.seconds))
        for kind, (success, seconds) in kinds.items():
            well.add_metric([look.target, name, kind], float(success))
            took.add_metric([look.target, name, kind], seconds)
    yield up
    yield booted
    yield well
    yield took
