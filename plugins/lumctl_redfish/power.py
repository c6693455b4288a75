"""The driver: one system of a management controller, by Redfish (DSP0266) over HTTPS.

``context.address`` is ``HOST:PORT``, always with TLS. Only a twin on loopback may have the address
``http://HOST:PORT``.
"""

from typing import ClassVar

from lumctl.devices.base import BasePower
from lumctl.devices.errors import DeviceError, DeviceRefusedError, InconsistentError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PowerReading
from lumctl_redfish.client import RedfishClient
from lumctl_redfish.document import (
    HEADED,
    OFF_AT_ONCE_WORDS,
    OFF_WORDS,
    ON_WORDS,
    RESTART_WORDS,
    Json,
    Reset,
    health_of,
    is_on,
    items,
    link,
    model_of,
    next_page,
    number,
    reset_of,
    state_of,
    text,
    watts_of_power,
    words_of_info,
)

_MOST_PAGES = 16


class RedfishPower(BasePower):
    """One system. ``context.component`` is its id; it is empty if the controller manages only one system."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SET_POWER, Capability.RESET})
    proven: ClassVar[str] = "sushy-tools 2.2.0; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._client = RedfishClient(context)
        self._found = ""
        self._meter: tuple[str, bool] | None = None

    def identify(self) -> str:
        """Maker and model, the system's id, and the controller's Redfish version."""
        with self._client.call():
            system = self._system()
            root = self._client.root()
        spoken = text(root, "RedfishVersion") or "of unknown version"
        named = model_of(system) or text(root, "Product") or text(root, "Vendor") or "a system"
        return f"{named}, system {_last(self._found)}, Redfish {spoken}"

    def read_power(self) -> PowerReading:
        """The system's power state, health and power draw; without the draw if the controller does not report it."""
        taken_at = self.context.now()
        with self._client.call():
            system = self._system()
            watts = self._watts(system)
        return PowerReading(
            taken_at,
            is_on(system),
            health=health_of(system),
            watts=watts,
            model=model_of(system),
        )

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the system on or off, unless it is in that state, or on its way to it and ``force`` is false.

        Raises:
            DeviceUnreachableError: nothing was sent.
            DeviceRefusedError: the controller refused, or does not offer this reset; nothing was done.
            InconsistentError: the controller refused, but the power state of the machine changed.
            OutcomeUnknownError: the request was sent, and no clear answer came.
        """
        with self._client.call():
            system = self._system()
            if is_on(system) is on or (state_of(system) == HEADED[on] and not force):
                return
            if on:
                self._reset(system, ON_WORDS)
            else:
                self._reset(system, OFF_AT_ONCE_WORDS if force else OFF_WORDS)

    def reset(self) -> None:
        """Restart the system at once.

        Raises: as :meth:`set_power`.
        """
        with self._client.call():
            self._reset(self._system(), RESTART_WORDS)

    def close(self) -> None:
        """End our session with the controller."""
        self._client.close()

    def _reset(self, system: Json, wanted: tuple[str, ...]) -> None:
        action = reset_of(system)
        if action is None:
            raise DeviceRefusedError(f"{self._client.name}: system {_last(self._found)} cannot be switched by Redfish")
        action = self._informed(action)
        word = action.word(wanted)
        if word is None:
            offered = ", ".join(sorted(action.words or ()))
            raise DeviceRefusedError(
                f"{self._client.name}: system {_last(self._found)} does not support {' or '.join(wanted)}, only: "
                f"{offered}",
                hint="switch it off at once, with force" if wanted == OFF_WORDS else None,
            )
        try:
            self._client.post(action.path, {"ResetType": word})
        except DeviceRefusedError as refusal:
            self._require_as_it_was(state_of(system), refusal)
            raise

    def _require_as_it_was(self, before: str, refusal: DeviceRefusedError) -> None:
        """Check that the power state did not change: a controller that refuses may have acted all the same."""
        try:
            now = state_of(self._system())
        except DeviceError as error:
            raise OutcomeUnknownError(f"{refusal.message}; then it was not read: {error.message}") from refusal
        if now != before:
            raise InconsistentError(
                f"{refusal.message}; but the machine went from {before or 'no state'} to {now or 'none'}",
                hint="read the machine's power before you send anything again",
            ) from refusal

    def _informed(self, action: Reset) -> Reset:
        """The action with its reset types; some controllers state these in a separate document."""
        if action.words is not None or action.info is None:
            return action
        try:
            info = self._client.get(action.info)
        except DeviceRefusedError:  # a dead reference: the controller refuses the types it lacks
            return action
        return Reset(action.path, words_of_info(info), None)

    def _system(self) -> Json:
        if self._found:
            try:
                return self._client.get(self._found)
            except DeviceRefusedError:  # a new board, or new firmware, may have another name for it
                self._found, self._meter = "", None
        self._found = self._path_of_system()
        return self._client.get(self._found)

    def _path_of_system(self) -> str:
        component, name = self.context.component, self._client.name
        paths = self._members(link(self._client.root(), "Systems"))
        if component:
            found = [path for path in paths if component in {path, _last(path)}]
            what = f"no system {component!r}"
        else:
            found = paths
            what = f"{len(paths)} systems" if paths else "no system"
        if len(found) == 1:
            return found[0]
        listed = ", ".join(map(_last, paths))
        raise DeviceRefusedError(
            f"{name} manages {what}",
            hint=f"power: {self.context.device}/ID, where ID is one of: {listed}" if listed else None,
        )

    def _members(self, page: str | None) -> list[str]:
        paths: list[str] = []
        for _ in range(_MOST_PAGES):
            if page is None:
                break
            collection = self._client.get(page)
            paths += [path.rstrip("/") for each in items(collection, "Members") if (path := link(each))]
            page = next_page(collection)
        return paths

    def _watts(self, system: Json) -> float | None:
        """The power draw of the system, from its chassis; ``None`` if it cannot be read, which is not a fault."""
        try:
            if self._meter is None:
                self._meter = self._path_of_meter(system)
            path, alone = self._meter
            meter = self._client.get(path) if path else {}
        except DeviceError:
            return None
        reading = number(meter, "PowerWatts", "Reading") if alone else None
        return watts_of_power(meter, self._found, alone=alone) if reading is None else reading

    def _path_of_meter(self, system: Json) -> tuple[str, bool]:
        """The path of the document with the draw, empty if none; and whether the draw is that of this system alone."""
        chassis = link(system, "Links", "Chassis", 0)
        if chassis is None:
            return "", False
        document = self._client.get(chassis)
        alone = len(items(document, "Links", "ComputerSystems")) <= 1
        metrics = link(document, "EnvironmentMetrics") if alone else None
        return metrics or link(document, "Power") or "", alone


def _last(path: str) -> str:
    return path.rpartition("/")[2]
