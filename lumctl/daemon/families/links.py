"""Links: their interfaces and their modules."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import Numbers, counter, filled, gauge
from lumctl.daemon.families.readable import Readable
from lumctl.health.rules.link import NO_CARRIER

_MODULE: tuple[tuple[str, str, str, float], ...] = (
    ("rx_power_dbm", "Light received by the module of a link; -Inf is no light.", "rx_power_dbm", 1),
    ("tx_power_dbm", "Light sent by the module of a link; -Inf is no light.", "tx_power_dbm", 1),
    ("temperature_celsius", "Temperature of the module of a link.", "temperature_c", 1),
    ("bias_amperes", "Bias current of the laser of a link.", "bias_ma", 0.001),
    ("transmitting", "Whether the module of a link sends light (1) or not (0).", "transmitting", 1),
    ("pre_fec_bit_error_ratio", "Bit error rate before correction, of the worst lane.", "pre_fec_ber", 1),
)
_BITS_PER_BYTE = 8
_ACTIVE = "ACTIVE"


def links(readable: Readable) -> Iterator[Metric]:
    """Whether links are up, how fast they are, and what their modules read."""
    target = readable.target
    interfaces = {lane.id: interface for lane, interface in readable.interfaces()}
    up: dict[str, bool | None] = dict(_infiniband(readable))
    up |= {
        name: interface.operstate not in NO_CARRIER
        for name, interface in interfaces.items()
        if interface.operstate is not None
    }
    yield filled(gauge("link_up", "Whether a link is up (1) or not (0).", ["id"]), target, up)
    speeds: Numbers = {name: interface.speed_mbps for name, interface in interfaces.items()}
    speed = gauge("link_speed_bytes", "What a link carries in a second when it is full.", ["id"])
    yield filled(speed, target, speeds, 1e6 / _BITS_PER_BYTE)
    changes: Numbers = {name: interface.carrier_changes for name, interface in interfaces.items()}
    yield filled(counter("link_carrier_changes", "Times a link went up or down.", ["id"]), target, changes)
    modules = {lane.id: module for lane, module in readable.modules()}
    for name, text, field, factor in _MODULE:
        numbers = {lane: getattr(module, field) for lane, module in modules.items()}
        yield filled(gauge(f"link_{name}", text, ["id"]), target, numbers, factor)
    limits: Numbers = {lane: module.thresholds.get("rx_power_low_alarm") for lane, module in modules.items()}
    text = "Received light below which the module of a link itself gives alarm."
    yield filled(gauge("link_rx_power_low_alarm_dbm", text, ["id"]), target, limits)


def _infiniband(readable: Readable) -> Iterator[tuple[str, bool]]:
    """Links that the inventory names by an InfiniBand device: up when all its ports are."""
    for lane in readable.look.inventory.transponders.values():
        host = readable.hosts.get(lane.host)
        ports = [port for port in host.infiniband if port.device == lane.interface] if host else []
        stated = [port for port in ports if port.state is not None and readable.is_new(port.taken_at)]
        if stated:
            yield lane.id, all((port.state or "").upper() == _ACTIVE for port in stated)
