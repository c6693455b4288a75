"""The transponder driver, and the optics readings of a port."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event
from typing import ClassVar
from xml.etree.ElementTree import Element

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, OpticsReading
from lumctl_openconfig.leaf import NAMES, Leaf, PathStep, component, same_hundredth, same_whole, text_at
from lumctl_openconfig.place import PortPlace, find, told

NO_LIGHT_DBM = -40.0
"""This power or less means no light. A decimal in these models cannot be minus infinity: for no light, devices show the
least power that their modules can state, which is 0.1 microwatt or less."""
_ALARM, _WARNING = ("CRITICAL", "MAJOR"), ("WARNING", "MINOR")
_LIMITED = {"input-power": "rx_power", "output-power": "tx_power", "laser-bias-current": "bias"}


def reading(place: PortPlace, transmitting: bool | None, taken_at: float) -> OpticsReading:
    """Make a reading from the parts of a port.

    Each value comes from the first of these that states it: the optical channel, its lanes (the worst lane), the
    transceiver as a whole.
    """
    optical = place.channel.find("t:optical-channel", NAMES)
    module = place.transceiver.find("x:transceiver", NAMES) if place.transceiver is not None else None
    laser_c = _worst(max, (_measured(lane, "x", "laser-temperature") for lane in place.lanes))
    case_c = _measured(place.transceiver, "p", "temperature")
    holder = place.transceiver if place.transceiver is not None else place.channel
    return OpticsReading(
        taken_at=taken_at,
        transmitting=transmitting,
        rx_power_dbm=_light(_power(place, optical, module, "input-power")),
        tx_power_dbm=_light(_power(place, optical, module, "output-power")),
        bias_ma=_first(
            _measured(optical, "t", "laser-bias-current"),
            _worst(max, (_measured(lane, "x", "laser-bias-current") for lane in place.lanes)),
            _measured(module, "x", "laser-bias-current"),
        ),
        temperature_c=_first(laser_c, case_c),
        voltage_v=_measured(module, "x", "supply-voltage"),
        vendor=_state(module, "x", "vendor") or _state(holder, "p", "mfg-name"),
        part=_state(module, "x", "vendor-part") or _state(holder, "p", "part-no"),
        thresholds=dict(_thresholds(module, "laser-temperature" if laser_c is not None else "module-temperature")),
        pre_fec_ber=_error_rate(place, module, "pre-fec-ber"),
        post_fec_ber=_error_rate(place, module, "post-fec-ber"),
        fec_uncorrectable=_uncorrectable(place, module),
        rx_los=_flag(place.lanes, "rx-los"),
        tx_fault=_flag(place.lanes, "tx-failure"),
        frequency_mhz=_frequency(place, optical),
        target_power_dbm=_number(told(optical, "t", "target-output-power") if optical is not None else None),
    )


def _power(place: PortPlace, optical: Element | None, module: Element | None, name: str) -> float | None:
    return _first(
        _measured(optical, "t", name),
        _worst(min, (_measured(lane, "x", name) for lane in place.lanes)),
        _measured(module, "x", name),
    )


def _light(dbm: float | None) -> float | None:
    return -math.inf if dbm is not None and dbm <= NO_LIGHT_DBM else dbm


def _error_rate(place: PortPlace, module: Element | None, name: str) -> float | None:
    return _first(
        _worst(max, (_measured(each.find("t:otn", NAMES), "t", name) for each in place.logical)),
        _measured(module, "x", name),
    )


def _uncorrectable(place: PortPlace, module: Element | None) -> int | None:
    for holder, prefix in [(each.find("t:otn", NAMES), "t") for each in place.logical] + [(module, "x")]:
        for name in ("fec-uncorrectable-blocks", "fec-uncorrectable-words"):
            text = _state(holder, prefix, name)
            if text is not None and text.isascii() and text.isdecimal():
                # A counter of 64 bits has at most 20 digits.
                return int(text[:20])
    return None


def _frequency(place: PortPlace, optical: Element | None) -> int | None:
    texts = [told(optical, "t", "frequency") if optical is not None else None]
    texts += [_state(lane, "x", "output-frequency") for lane in place.lanes]
    return next((int(value) for text in texts if (value := _number(text)) is not None and value > 0), None)


def _thresholds(module: Element | None, temperature: str) -> Iterator[tuple[str, float]]:
    """The module's limits, by lumctl's names. If two severities get the same name, the more severe one is used."""
    if module is None:
        return
    by_severity: dict[str, Element] = {}
    for each in module.iterfind("x:thresholds/x:threshold", NAMES):
        severity = _state(each, "x", "severity") or text_at(each, "x:severity") or ""
        by_severity.setdefault(severity.rpartition(":")[2], each)
    for level, severities in (("alarm", _ALARM), ("warning", _WARNING)):
        stated = next((by_severity[name] for name in severities if name in by_severity), None)
        for theirs, ours in (_LIMITED | {temperature: "temperature"}).items():
            for edge, side in (("upper", "high"), ("lower", "low")):
                limit = _number(_state(stated, "x", f"{theirs}-{edge}"))
                if limit is not None:
                    yield f"{ours}_{side}_{level}", limit


def _measured(element: Element | None, prefix: str, name: str) -> float | None:
    """A measured value: the present value, or the mean if the device only keeps statistics."""
    if element is None:
        return None
    path = f"{prefix}:state/{prefix}:{name}"
    return _first(*(_number(text_at(element, f"{path}/{prefix}:{kind}")) for kind in ("instant", "avg")))


def _flag(lanes: Iterable[Element], name: str) -> bool | None:
    """Whether any lane raises a flag."""
    said = {_state(lane, "x", name) for lane in lanes}
    return True if said & {"true", "1"} else False if said & {"false", "0"} else None


def _state(element: Element | None, prefix: str, name: str) -> str | None:
    return text_at(element, f"{prefix}:state/{prefix}:{name}") if element is not None else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return None if math.isnan(value) or value == math.inf else value


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _worst(which: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return which(known) if known else None


_POLL_S = 0.1
_ON = {"tx-laser": "true", "enabled": "true", "admin-state": "ENABLED"}
_OFF = {"tx-laser": "false", "enabled": "false", "admin-state": "DISABLED"}
_OFF_TEXTS = frozenset({"false", "0", "DISABLED"})


class OpenConfigTransponder(BaseTransponder):
    """One optical channel of a chassis, over NETCONF and OpenConfig's terminal-device and platform-transceiver.

    ``context.component`` names the component of type OPTICAL_CHANNEL. Its transceiver is the component itself, if that
    has a ``transceiver`` container; else the component that its ``line-port`` names, or its parent; else the module in
    the line port. That module is the port's only subcomponent that is a transceiver; of several, it is the one with a
    physical channel that names the optical channel. The driver searches again in each call, since modules are replaced.

    The transmitter is switched by the first of these that the device shows, in ``config`` or ``state``: ``tx-laser`` of
    the physical channels that carry the optical channel; ``enabled`` of the transceiver, which also switches its
    receiver off; ``admin-state`` of the logical channels that are assigned to the optical channel (MAINT counts as on).

    The driver locks, edits and commits the candidate configuration if the device has one; otherwise it locks and edits
    the running configuration. Then the running configuration must show the new value, and so must the state, if the
    device shows it there. The context's time limit covers all of this, and a laser takes a while to follow.
    """

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.READ_OPTICS, Capability.SET_TRANSMIT, Capability.SET_CHANNEL, Capability.SET_OUTPUT_POWER}
    )
    proven: ClassVar[str] = "netconfd 2.13 (configuration) and twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._client = NetconfClient(context)
        self._closed = Event()

    def read_optics(self) -> OpticsReading:
        """The readings of the optical channel and its transceiver.

        Raises:
            DeviceRefusedError: the chassis has no such component.
        """
        taken_at = self.context.now()
        with self._client.one_call():
            place = self._place()
            return reading(place, self._transmits(place.switch()), taken_at)

    def set_transmit(self, enabled: bool) -> None:
        """Switch the transmitter.

        Raises:
            DeviceRefusedError: the device shows nothing that switches the transmitter, or refused; nothing changed.
            OutcomeUnknownError: the change was sent, and no clear answer came.
            InconsistentError: the device accepted the change and does not show it, or refused it and shows it.
        """
        words = _ON if enabled else _OFF
        with self._client.deadline():
            with self._client.one_call():
                values = [(leaf, words[leaf.name]) for leaf in self._switch()]
                self._write(values)
            # Outside one_call(), so that other calls need not wait for a slow laser.
            self._follows(values)

    def transmitting(self) -> bool:
        """Whether the transmitter is on, by its state, or by its configuration if the device shows no state."""
        with self._client.one_call():
            transmits = self._transmits(self._switch())
        if transmits is None:
            raise DeviceUnreachableError(
                f"{self.context.device}: the leaf that switches its transmitter has just disappeared"
            )
        return transmits

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the transmitter. Raises as :meth:`set_transmit`."""
        if frequency_mhz <= 0:
            raise DeviceRefusedError(
                f"{self.context.device}: {frequency_mhz} MHz is not a valid frequency; nothing was sent"
            )
        self._write_optical("frequency", str(frequency_mhz), same_whole)

    def set_output_power(self, dbm: float) -> None:
        """Set the transmit power, in steps of 0.01 dBm. Raises as :meth:`set_transmit`."""
        if not math.isfinite(dbm):
            raise DeviceRefusedError(f"{self.context.device}: {dbm} dBm cannot be set; nothing was sent")
        self._write_optical("target-output-power", f"{dbm:.2f}", same_hundredth)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._closed.set()
        self._client.close()

    def _place(self) -> PortPlace:
        return find(self._client, self.context.device, self.context.component)

    def _switch(self) -> tuple[Leaf, ...]:
        switch = self._place().switch()
        if not switch:
            raise DeviceRefusedError(
                f"{self.context.device}: the chassis has no leaf that switches the transmitter of "
                f"{self.context.component!r}; nothing was sent",
                hint="the driver looks for tx-laser, a transceiver's enabled, and a logical channel's admin-state",
            )
        return switch

    def _transmits(self, switch: Iterable[Leaf]) -> bool | None:
        said = [text for leaf in switch if (text := self._shown(leaf, "state") or self._shown(leaf, "config"))]
        return any(text.rpartition(":")[2] not in _OFF_TEXTS for text in said) if said else None

    def _write_optical(self, name: str, value: str, same: Callable[[str, str], bool]) -> None:
        steps = (*component(self.context.component), PathStep("t", "optical-channel"))
        values = [(Leaf(steps, name, same), value)]
        with self._client.deadline():
            with self._client.one_call():
                self._place()  # an edit would create a component that does not exist
                self._write(values)
            self._follows(values)

    def _write(self, values: Sequence[tuple[Leaf, str]]) -> None:
        before = [self._shown(leaf, "config") for leaf, _ in values]
        try:
            self._commit(values)
        # Busy is a refusal too, but one that always means that nothing changed.
        except DeviceBusyError:
            raise
        except DeviceRefusedError as refusal:
            if [self._shown_after(leaf, "config") for leaf, _ in values] != before:
                raise InconsistentError(
                    f"{refusal.message}; but it has accepted part of it",
                    hint="read the transponder before you continue",
                ) from refusal
            raise
        for leaf, value in values:
            shown = self._shown_after(leaf, "config")
            if shown is None or not leaf.same(shown, value):
                raise self._disagrees(leaf, value, "configuration", shown)

    def _commit(self, values: Sequence[tuple[Leaf, str]]) -> None:
        target = "candidate" if self._client.offers("candidate") else "running"
        with self._client.locked(target):
            for at, (leaf, value) in enumerate(values):
                try:
                    self._client.edit_config(leaf.edit(value), target=target)
                except (DeviceUnreachableError, DeviceBusyError) as error:
                    # Nothing was changed yet, or what was changed is discarded with the candidate.
                    if at == 0 or target == "candidate":
                        raise
                    raise OutcomeUnknownError(f"{error.message}; {at} of {len(values)} edits were accepted") from error
            if target == "candidate":
                # commit validates by itself. After a validate request, netconfd 2.13 commits nothing and says OK.
                self._client.commit()

    def _follows(self, values: Sequence[tuple[Leaf, str]]) -> None:
        """Wait until the state agrees with the configuration, for the remaining time of the call.

        No further read begins when little time is left: its timeout would hide the result of the read before.
        """
        for leaf, value in values:
            before_s = self._client.left_s()
            while (shown := self._shown_after(leaf, "state")) is not None and not leaf.same(shown, value):
                left_s = self._client.left_s()
                if left_s < _POLL_S + 2 * (before_s - left_s) or self._closed.wait(_POLL_S):
                    raise self._disagrees(leaf, value, "state", shown)
                before_s = self._client.left_s()

    def _disagrees(self, leaf: Leaf, value: str, where: str, shown: str | None) -> InconsistentError:
        what = f"shows {shown!r}" if shown is not None else "does not show it"
        return InconsistentError(
            f"{self.context.device}: {leaf.name} was set to {value!r}, the device confirmed it, but its {where} {what}",
            hint="the device may not have this leaf for this component: see its documentation",
        )

    def _shown(self, leaf: Leaf, container: str) -> str | None:
        asked = leaf.asked(container)
        data = self._client.get(asked) if container == "state" else self._client.get_config("running", asked)
        return leaf.read(data, container)

    def _shown_after(self, leaf: Leaf, container: str) -> str | None:
        """Read a leaf after a write. If the device does not answer or refuses the read, the outcome is unknown."""
        try:
            return self._shown(leaf, container)
        except (DeviceUnreachableError, DeviceRefusedError, UnsupportedError) as error:
            raise OutcomeUnknownError(f"{error.message}; {leaf.name} was set just before") from error
