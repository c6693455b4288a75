"""The transponder driver."""

import math
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import ClassVar

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
from lumctl_openconfig.leaf import Leaf, PathStep, component, same_hundredth, same_whole
from lumctl_openconfig.optics import reading
from lumctl_openconfig.place import PortPlace, find

_POLL_S = 0.1
_ON = {"tx-laser": "true", "enabled": "true", "admin-state": "ENABLED"}
_OFF = {"tx-laser": "false", "enabled": "false", "admin-state": "DISABLED"}
_OFF_TEXTS = frozenset({"false", "0", "DISABLED"})


class OpenConfigTransponder(BaseTransponder):
    """One optical channel of a chassis, over NETCONF and OpenConfig's terminal-device and platform-transceiver.

    ``context.component`` names the component of type OPTICAL_CHANNEL. Its transceiver is the component itself, if it
    has a ``transceiver`` container; else what its ``line-port`` names, or its parent; else what is plugged into the
    line port: its one subcomponent that is a transceiver, or the one of which a physical channel names the optical
    channel. Nothing of this is remembered from one call to the next, since modules are replaced.

    The transmitter is switched by the first of these that the device shows, in ``config`` or ``state``: ``tx-laser`` of
    the physical channels that carry the optical channel; ``enabled`` of the transceiver, which darkens its receiver
    too; ``admin-state`` of the logical channels that are assigned to the optical channel (MAINT counts as on).

    What is set goes over the candidate, locked and committed, where the device has one, else straight to the running
    configuration, locked too. Then it must stand in the running configuration, and in the state beside it, where the
    device shows that, before the context's time is over, which is for all of this: a laser takes a while to follow.
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
            DeviceRefusedError: the device shows nothing that switches it, or said no; nothing changed.
            OutcomeUnknownError: it was sent, and no clear answer came.
            InconsistentError: the device took it and does not show it, or said no and shows it.
        """
        words = _ON if enabled else _OFF
        with self._client.deadline():
            with self._client.one_call():
                values = [(leaf, words[leaf.name]) for leaf in self._switch()]
                self._write(values)
            self._follows(values)

    def transmitting(self) -> bool:
        """Whether the transmitter is switched on, by its state, or by its configuration where no state is shown."""
        with self._client.one_call():
            transmits = self._transmits(self._switch())
        if transmits is None:
            raise DeviceUnreachableError(f"{self.context.device}: what switches its transmitter has just gone")
        return transmits

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the transmitter. Raises as :meth:`set_transmit`."""
        if frequency_mhz <= 0:
            raise DeviceRefusedError(f"{self.context.device}: {frequency_mhz} MHz is no frequency; nothing was sent")
        self._write_optical("frequency", str(frequency_mhz), same_whole)

    def set_output_power(self, dbm: float) -> None:
        """Set the power to send with, in steps of 0.01 dBm. Raises as :meth:`set_transmit`."""
        if not math.isfinite(dbm):
            raise DeviceRefusedError(f"{self.context.device}: {dbm} dBm cannot be set; nothing was sent")
        self._write_optical("target-output-power", f"{dbm:.2f}", same_hundredth)

    def close(self) -> None:
        """Hang up; a second call does nothing."""
        self._closed.set()
        self._client.close()

    def _place(self) -> PortPlace:
        return find(self._client, self.context.device, self.context.component)

    def _switch(self) -> tuple[Leaf, ...]:
        switch = self._place().switch()
        if not switch:
            raise DeviceRefusedError(
                f"{self.context.device}: the chassis shows nothing that switches the transmitter of "
                f"{self.context.component!r}; nothing was sent",
                hint="it looks for tx-laser, a transceiver's enabled, and a logical channel's admin-state",
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
                self._place()  # an edit would make a component that is not there
                self._write(values)
            self._follows(values)

    def _write(self, values: Sequence[tuple[Leaf, str]]) -> None:
        before = [self._shown(leaf, "config") for leaf, _ in values]
        try:
            self._commit(values)
        except DeviceBusyError:
            raise
        except DeviceRefusedError as refusal:
            if [self._shown_after(leaf, "config") for leaf, _ in values] != before:
                raise InconsistentError(
                    f"{refusal.message}; and it has taken some of it", hint="read the transponder before going on"
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
                    if at == 0 or target == "candidate":
                        raise
                    raise OutcomeUnknownError(f"{error.message}; {at} of {len(values)} edits were taken") from error
            if target == "candidate":
                # It validates by itself. After a request to validate, netconfd 2.13 commits nothing and says OK.
                self._client.commit()

    def _follows(self, values: Sequence[tuple[Leaf, str]]) -> None:
        """Wait until the state is as the configuration, for what is left of the call's time.

        No look is begun for which there is hardly time: it would only hide what the one before it showed.
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
            f"{self.context.device}: {leaf.name} was set to {value!r}, the device said yes, and its {where} {what}",
            hint="the device may not have this leaf for this component: see its own documents",
        )

    def _shown(self, leaf: Leaf, container: str) -> str | None:
        asked = leaf.asked(container)
        data = self._client.get(asked) if container == "state" else self._client.get_config("running", asked)
        return leaf.read(data, container)

    def _shown_after(self, leaf: Leaf, container: str) -> str | None:
        """What is shown after a write: a silence leaves that in doubt, and so does a no to the reading."""
        try:
            return self._shown(leaf, container)
        except (DeviceUnreachableError, DeviceRefusedError, UnsupportedError) as error:
            raise OutcomeUnknownError(f"{error.message}; {leaf.name} was set just before") from error
