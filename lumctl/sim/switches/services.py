"""The servers of a world's switches: a twin for the protocol of each driver."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from xml.etree.ElementTree import Element, SubElement

import paramiko

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.types import Alarm
from lumctl.inventory.model import Device, DeviceKind
from lumctl.sim import ssh
from lumctl.sim.netconf import Keys, NetconfServer, RpcError
from lumctl.sim.switches.scpi import NO_LIGHT_DBM, ScpiSwitch
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.switch import SwitchState
from lumctl.sim.world.world import World

NS = "http://www.polatis.com/yang/optical-switch"
ALARM_NS = "http://www.polatis.com/yang/polatis-switch"


class SwitchTree:
    """One switch for :class:`lumctl.sim.netconf.NetconfServer`. The arguments are those of :class:`ScpiSwitch`.

    ``alarms`` returns its alarms; those of ports are ignored, because they come from the state. Joins change only
    through its configuration.
    """

    keys: Keys

    def __init__(
        self,
        held: Callable[[], AbstractContextManager[SwitchState]],
        *,
        changed: Callable[[], AbstractContextManager[SwitchState]] | None = None,
        powers: Callable[[tuple[int, ...]], Mapping[int, float]] | None = None,
        alarms: Callable[[], Iterable[Alarm]] = tuple,
        name: str = "switch",
        conduct: Callable[[], Misbehaviour] = Misbehaviour,
    ) -> None:
        self._held = held
        self._changed = changed or held
        self._powers = powers
        self._alarms = alarms
        self._name = name
        self._conduct = conduct
        self.keys = {_name("pair"): (_name("ingress"),), _name("port"): (_name("port-id"),)}
        self.operations: Mapping[str, Callable[[Element], None]] = {_name("port-set-state"): self._set_state}

    def initial(self) -> Element:
        """The initial joins and labels."""
        root = Element("root")
        with self._held() as state:
            pairs = SubElement(root, _name("cross-connects"))
            for ingress, egress in state.joins.items():
                pair = SubElement(pairs, _name("pair"))
                SubElement(pair, _name("ingress")).text = str(ingress + 1)
                SubElement(pair, _name("egress")).text = str(egress + 1)
            ports = SubElement(root, _name("port-config"))
            for number in range(state.port_count):
                port = _port(ports, number)
                if state.labels.get(number):
                    SubElement(port, _name("label")).text = state.labels[number]
        return root

    def check(self, config: Element) -> None:
        """Check that every port exists and is joined at most once.

        Raises:
            RpcError: a port does not exist or is joined twice.
        """
        for pair in config.findall(f"{_name('cross-connects')}/{_name('pair')}"):
            if pair.find(_name("egress")) is None:
                raise RpcError("missing-element", "a pair lacks its egress port", info=(("bad-element", "egress"),))
        with self._held() as state:
            # An empty switch, because a configuration states all joins.
            trial = SwitchState(state.port_count, state.input_count)
            try:
                trial.join(_pairs(config))
                trial.require(_labels(config))
            except DeviceRefusedError as error:
                raise RpcError("invalid-value", error.message) from None

    def apply(self, config: Element) -> None:
        """Set joins and labels as in the configuration; incomplete entries change nothing."""
        pairs = dict(_pairs(config))
        with self._changed() as state:
            # Joins that stay are not touched, so that their light does not blink.
            state.part([pair for pair in state.joins.items() if pairs.get(pair[0]) != pair[1]])
            for pair in pairs.items():
                if not {state.partner(port) for port in pair} - {None, *pair}:
                    state.join([pair])
            state.labels = _labels(config)

    def state(self) -> Element:
        """The state of the switch: maker and model, ports, powers, and alarms."""
        root = Element("root")
        with self._held() as state:
            product = SubElement(root, _name("product-information"))
            inputs, outputs = state.input_count, state.port_count - state.input_count
            for leaf, text in {
                "manufacturer": "Polatis",
                "serial-number": "000000",
                "model-name": f"I-SIM-{inputs}x{outputs or 'CC'}-{self._name}",
                "software-version": "0.0",
            }.items():
                SubElement(product, _name(leaf)).text = text
            every = range(state.port_count)
            ports = SubElement(root, _name("port-config"))
            for number in every:
                status = "FAILED" if number in state.failed else "DISABLED" if number in state.disabled else "ENABLED"
                SubElement(_port(ports, number), _name("status")).text = status
            if self._powers is not None:
                monitors = SubElement(root, _name("opm-power"))
                for number, dbm in self._powers(tuple(every)).items():
                    shown = dbm if dbm > -math.inf else NO_LIGHT_DBM
                    SubElement(_port(monitors, number), _name("power")).text = f"{shown:.2f}"
            alarms = SubElement(root, f"{{{ALARM_NS}}}system-alarms")
            # Alarm texts use the device's own port numbers, from 1; the model has no severities.
            complaints = [(a.since, a.text) for a in self._alarms() if not a.source.startswith("port/")]
            complaints += [(since, f"port {number + 1} has failed") for number, since in sorted(state.failed.items())]
            for since, message in complaints:
                alarm = SubElement(alarms, f"{{{ALARM_NS}}}alarm")
                for leaf, text in {
                    "alarm-time": datetime.fromtimestamp(since or 0.0, UTC).isoformat(),
                    "alarm-type": "NOTIF_SYSTEM",
                    "alarm-message": message,
                }.items():
                    SubElement(alarm, f"{{{ALARM_NS}}}{leaf}").text = text
        return root

    def _set_state(self, asked: Element) -> None:
        """The operation that enables and disables ports."""
        conduct = self._conduct()
        wanted = [(_number(leaf.text), leaf.tag == _name("port-enab")) for leaf in asked]
        with self._held() as state:
            try:
                state.require(port for port, _ in wanted)
            except DeviceRefusedError as error:
                raise RpcError("invalid-value", error.message) from None
            for port, on in conduct.taken(wanted):
                state.switch([port], on=on)
        if conduct.says_no:
            raise RpcError("operation-failed", conduct.complaint)


def _name(leaf: str) -> str:
    return f"{{{NS}}}{leaf}"


def _port(parent: Element, number: int) -> Element:
    port = SubElement(parent, _name("port"))
    SubElement(port, _name("port-id")).text = str(number + 1)
    return port


def _pairs(config: Element) -> list[tuple[int, int]]:
    found = config.findall(f"{_name('cross-connects')}/{_name('pair')}")
    ends = ((pair.findtext(_name("ingress")), pair.findtext(_name("egress"))) for pair in found)
    return [(_number(ingress), _number(egress)) for ingress, egress in ends if egress is not None]


def _labels(config: Element) -> dict[int, str]:
    ports = config.findall(f"{_name('port-config')}/{_name('port')}")
    return {_number(port.findtext(_name("port-id"))): port.findtext(_name("label")) or "" for port in ports}


def _number(text: str | None) -> int:
    if text is None or not text.isdecimal():
        raise RpcError("invalid-value", f"{text!r} is not a port")
    return int(text) - 1


SCPI_DRIVER, NETCONF_DRIVER = "polatis-scpi", "polatis-netconf"
"""The drivers whose switches are served here."""

SwitchService = ScpiSwitch | NetconfServer


def switch_services(
    world: World, *, client_key: paramiko.PKey, pause: Callable[[float], object]
) -> dict[str, SwitchService]:
    """The services of all switches whose protocol is served here, by device id; they do not listen yet."""
    found: dict[str, SwitchService] = {}
    for device in world.inventory.devices.values():
        if device.kind is DeviceKind.SWITCH and device.driver == SCPI_DRIVER:
            found[device.id] = _scpi(world, device, pause)
        elif device.kind is DeviceKind.SWITCH and device.driver == NETCONF_DRIVER:
            found[device.id] = _netconf(world, device, client_key)
    return found


def _scpi(world: World, device: Device, pause: Callable[[float], object]) -> ScpiSwitch:
    return ScpiSwitch(
        partial(world.switches.held, device.id),
        changed=partial(world.switches.changed, device.id),
        powers=partial(world.switches.powers, device.id),
        name=device.id,
        conduct=partial(world.misbehaviour, device.id),
        wait=pause,
    )


def _netconf(world: World, device: Device, client_key: paramiko.PKey) -> NetconfServer:
    conduct = partial(world.misbehaviour, device.id)
    tree = SwitchTree(
        partial(world.switches.held, device.id),
        changed=partial(world.switches.changed, device.id),
        powers=partial(world.switches.powers, device.id),
        alarms=partial(world.switches.alarms, device.id),
        name=device.id,
        conduct=conduct,
    )
    return NetconfServer(
        device.id,
        tree,
        key=ssh.loaded(ssh.new_private_key()),
        client_key=client_key,
        conduct=conduct,
        operations=tree.operations,
    )
