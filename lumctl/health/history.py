"""Record the readings of each observation in the trends of their components."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from lumctl.health.acknowledgements import EventClear
from lumctl.health.look import HostLook, Look, Place
from lumctl.health.rulebook import verdict
from lumctl.health.rules.link import NO_CARRIER
from lumctl.health.rules.load import is_throttled
from lumctl.health.rules.nvlink import packet_errors, part_of
from lumctl.health.states import HealthReport, State
from lumctl.health.trend import Trend, trend_from, windows_of
from lumctl.inventory.model import Accelerator, Transponder

ACCELERATOR, LINK, HOST = "accelerator", "link", "host"
UNSTEADY = "gpu.unsteady"
"""The rule that counts how often an accelerator was lost or failed; an operator can end the counted events."""
_LOSSES, _RECOVERIES = "losses", "recoveries"
_MINUTE_S = 60.0
_WORKS = frozenset({State.OK, State.DEGRADED})


class TrendHistory:
    """The trends of all components, and the last boot id of each host."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        document = document or {}
        self._boots: dict[str, str] = dict(document.get("boots", {}))
        self.trends: dict[Place, Trend] = {
            (str(kind), str(component)): trend_from(written) for kind, component, written in document.get("trends", ())
        }

    def clear(self, cleared: Iterable[EventClear]) -> None:
        """Forget the losses and recoveries of accelerators that an operator ended."""
        for clear in cleared:
            trend = self.trends.get((ACCELERATOR, clear.component))
            if trend is not None and clear.rule in {None, UNSTEADY}:
                trend.end((_LOSSES, _RECOVERIES), clear.at)

    def take(self, look: Look, quiet: Collection[Place]) -> None:
        """Record the readings of an observation. ``quiet`` are the components for which nothing counts now."""
        self._keep_to(look)
        for place in quiet:
            if place[0] in {ACCELERATOR, LINK, HOST}:
                self._trend(place).rest(look.now)
        for host, here in look.collected.items():
            if look.readable(host) is None:
                continue
            if here.seen.boot_id is not None and self._boots.get(host) != here.seen.boot_id:
                self._boots[host] = here.seen.boot_id
                self._begin_again(look, here)
            self._take_readings(look, here, quiet)

    def _take_readings(self, look: Look, here: HostLook, quiet: Collection[Place]) -> None:
        host = here.seen.host
        if (HOST, host) not in quiet:
            self._take_host(look, here)
        for accelerator in here.accelerators:
            if (ACCELERATOR, accelerator.id) not in quiet:
                self._take_gpu(look, here, accelerator)
        for lane in look.lanes[host]:
            if (LINK, lane.id) not in quiet:
                self._take_link(look, here, lane)

    def note_states(self, report: HealthReport) -> list[str]:
        """Note which accelerators are lost or failed; return those that are back since the last observation."""
        back: list[str] = []
        for name, health in report.accelerators.items():
            lost = bool(health.findings) and any(finding.rule == "gpu.lost" for finding in health.findings)
            failed = health.state is State.FAILED
            trend = self._trend((ACCELERATOR, name)) if lost or failed else self.trends.get((ACCELERATOR, name))
            if trend is None or not (lost or failed or trend.lost or trend.failed):
                continue
            if health.state is State.DISABLED:
                # Out of service or in maintenance: it is being worked on, so its return is no recovery.
                trend.lost = trend.failed = False
                continue
            at = report.at if health.read_at is None else health.read_at
            # With a current reading: while its host is not read, nothing shows that it is back.
            is_listed = trend.lost and not lost and health.otherwise is State.OK
            works = trend.failed and health.state in _WORKS
            if is_listed or works:
                # A lost accelerator is failed too: this counts once, as a loss.
                trend.happened(_LOSSES if is_listed else _RECOVERIES, "", at)
                back.append(name)
            trend.lost = (trend.lost or lost) and not is_listed
            trend.failed = (trend.failed or failed) and not works
        return back

    def _begin_again(self, look: Look, here: HostLook) -> None:
        """Restart all counters of a host after a boot."""
        for accelerator in here.accelerators:
            self._trend((ACCELERATOR, accelerator.id)).begin_again()
        for lane in look.lanes[here.seen.host]:
            self._trend((LINK, lane.id)).begin_again()
        if (HOST, here.seen.host) in self.trends:
            self.trends[HOST, here.seen.host].begin_again()

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        trends = ((*place, trend.document()) for place, trend in self.trends.items())
        return {"boots": self._boots, "trends": [list(entry) for entry in trends if entry[2]]}

    def _trend(self, place: Place) -> Trend:
        trend = self.trends.get(place)
        if trend is None:
            trend = self.trends[place] = Trend()
        return trend

    def _keep_to(self, look: Look) -> None:
        """Forget components that left the inventory: their names may return for other hardware."""
        inventory = look.inventory
        known = {ACCELERATOR: inventory.accelerators, LINK: inventory.transponders, HOST: inventory.hosts}
        for place in [p for p in self.trends if p[1] not in known.get(p[0], ())]:
            del self.trends[place]
        for host in [host for host in self._boots if host not in inventory.hosts]:
            del self._boots[host]
        for trend in self.trends.values():
            if trend.tallies:
                trend.forget(look.now)

    def _take_host(self, look: Look, here: HostLook) -> None:
        services = look.fresh("services", here.seen.services)
        if services is not None:
            trend = self._trend((HOST, here.seen.host))
            for service in services.by_name.values():
                trend.read("service_restarts", service.name, service.restarts, services.taken_at)

    def _take_gpu(self, look: Look, here: HostLook, accelerator: Accelerator) -> None:
        trend = self._trend((ACCELERATOR, accelerator.id))
        reading = here.gpus.get(accelerator.id)
        if reading is not None and not look.stale(reading.taken_at):
            at = reading.taken_at
            trend.read("pcie_replays", "", reading.pcie_replays, at)
            trend.read("retired_double_bit", "", reading.retired_double_bit, at)
            if trend.read("ecc_uncorrectable", "", reading.ecc_volatile_uncorrectable, at):
                # One fault may raise the counter by many errors: only the fact that it grew is counted.
                trend.happened("ecc_events", "", at)
            if is_throttled(reading) and trend.is_new("throttled_minute", int(at // _MINUTE_S), at):
                # A minute counts once, even if it is read several times.
                trend.happened("throttled", "", at)
        for link in here.nvlinks.get(accelerator.id, ()):
            part = part_of(link)
            if link.errors_at is not None:
                trend.read("nvlink_replays", part, link.replay_errors, link.errors_at)
                trend.read("nvlink_recoveries", part, link.recovery_errors, link.errors_at)
                trend.read("nvlink_crc", part, link.crc_errors, link.errors_at)
                trend.read("nvlink_packets", part, packet_errors(link), link.errors_at)
            if link.active:
                trend.worked.add(part)

    def _take_link(self, look: Look, here: HostLook, lane: Transponder) -> None:
        place = (LINK, lane.id)
        trend = self._trend(place)
        interface = here.seen.interfaces.get(lane.interface)
        if (
            interface is not None
            and not look.stale(interface.taken_at)
            and not look.outdated(interface.taken_at, place)
        ):
            trend.read("carrier_changes", lane.interface, interface.carrier_changes, interface.taken_at)
        for part, counter, value, at in _port_counters(here, lane):
            if not look.stale(at) and not look.outdated(at, place):
                trend.read(counter, part, value, at)
        up, at = _up(here, lane)
        if lane.id not in look.in_use or up is None or look.stale(at) or look.outdated(at, place):
            trend.down_since = None if lane.id not in look.in_use else trend.down_since
        elif up and trend.down_since is not None:
            # A shorter loss is no flap. Changes of the carrier are counted apart.
            if at - trend.down_since >= verdict("link.unsteady", "flapping").limits["down_s"]:
                trend.happened("flaps", lane.interface, at)
            trend.down_since = None
        elif not up and trend.down_since is None:
            trend.down_since = at


def _port_counters(here: HostLook, lane: Transponder) -> Iterator[tuple[str, str, int, float]]:
    """The counters of an interface, or of the ports of an InfiniBand device of that name.

    Yields the name of the port, the name of the counter, its value, and the time of the reading.
    """
    for port in here.ports_of(lane.interface):
        for counter, value in port.values.items():
            if windows_of(counter):
                yield port.name, counter, value, port.taken_at


def _up(here: HostLook, lane: Transponder) -> tuple[bool | None, float]:
    """Whether a link is up and when that was read; ``None`` if unknown."""
    interface = here.seen.interfaces.get(lane.interface)
    if interface is not None and interface.operstate is not None:
        return interface.operstate not in NO_CARRIER, interface.taken_at
    ports = [port for port in here.seen.infiniband if port.device == lane.interface and port.state is not None]
    if ports:
        return all((port.state or "").upper() == "ACTIVE" for port in ports), min(port.taken_at for port in ports)
    return None, 0.0
