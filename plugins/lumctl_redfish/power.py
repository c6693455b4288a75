"""The driver: one system of a management controller, by Redfish (DSP0266) over HTTPS.

``context.address`` is ``HOST:PORT``, always by TLS. A twin on loopback may be named ``http://HOST:PORT``.
"""

from typing import ClassVar

from lumctl.devices.base import BasePower
from lumctl.devices.errors import DeviceError, DeviceRefusedError, InconsistentError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PowerReading
from lumctl_redfish import system as words
from lumctl_redfish.client import RedfishClient
from lumctl_redfish.document import Json, items, link, number, text

_MOST_PAGES = 16


class RedfishPower(BasePower):
    """One system. ``context.component`` is its id, empty for the only one that the controller manages."""

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
        """Maker and model, the system's id, and the version of Redfish that is spoken."""
        with self._client.call():
            system = self._system()
            root = self._client.root()
        spoken = text(root, "RedfishVersion") or "of no stated version"
        named = words.model_of(system) or text(root, "Product") or text(root, "Vendor") or "a system"
        return f"{named}, system {_last(self._found)}, Redfish {spoken}"

    def read_power(self) -> PowerReading:
        """The system's power state, health and draw. The draw is left out where the controller does not tell it."""
        taken_at = self.context.now()
        with self._client.call():
            system = self._system()
            watts = self._watts(system)
        return PowerReading(
            taken_at,
            words.is_on(system),
            health=words.health_of(system),
            watts=watts,
            model=words.model_of(system),
        )

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the system, unless it is already there; one that is on its way there is left alone unless forced.

        Raises:
            DeviceUnreachableError: nothing was sent.
            DeviceRefusedError: the controller says no, or has no such way to switch; nothing was done.
            InconsistentError: the controller says no, and the machine shows that it was done.
            OutcomeUnknownError: it was sent and no clear answer came.
        """
        with self._client.call():
            system = self._system()
            if words.is_on(system) is on or (words.state_of(system) == words.HEADED[on] and not force):
                return
            if on:
                self._reset(system, words.ON_WORDS)
            else:
                self._reset(system, words.OFF_AT_ONCE_WORDS if force else words.OFF_WORDS)

    def reset(self) -> None:
        """Restart the system at once.

        Raises: as :meth:`set_power`.
        """
        with self._client.call():
            self._reset(self._system(), words.RESTART_WORDS)

    def close(self) -> None:
        """End our session with the controller."""
        self._client.close()

    def _reset(self, system: Json, wanted: tuple[str, ...]) -> None:
        action = words.reset_of(system)
        if action is None:
            raise DeviceRefusedError(f"{self._client.name}: system {_last(self._found)} cannot be switched by Redfish")
        action = self._informed(action)
        word = action.word(wanted)
        if word is None:
            offered = ", ".join(sorted(action.words or ()))
            raise DeviceRefusedError(
                f"{self._client.name}: system {_last(self._found)} takes no {' or '.join(wanted)}, only: {offered}",
                hint="switch it off at once, with force" if wanted == words.OFF_WORDS else None,
            )
        try:
            self._client.post(action.path, {"ResetType": word})
        except DeviceRefusedError as refusal:
            self._require_as_it_was(words.state_of(system), refusal)
            raise

    def _require_as_it_was(self, before: str, refusal: DeviceRefusedError) -> None:
        """A controller that says no may have acted all the same."""
        try:
            now = words.state_of(self._system())
        except DeviceError as error:
            raise OutcomeUnknownError(f"{refusal.message}; then it was not read: {error.message}") from refusal
        if now != before:
            raise InconsistentError(
                f"{refusal.message}; and the machine went from {before or 'no state'} to {now or 'none'}",
                hint="read the machine's power before anything is sent again",
            ) from refusal

    def _informed(self, action: words.Reset) -> words.Reset:
        """The action with its words, which some controllers keep in a document of their own."""
        if action.words is not None or action.info is None:
            return action
        try:
            info = self._client.get(action.info)
        except DeviceRefusedError:  # a reference to nothing: the controller will say what it does not take
            return action
        return words.Reset(action.path, words.words_of_info(info), None)

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
            page = words.next_page(collection)
        return paths

    def _watts(self, system: Json) -> float | None:
        """What the system draws, by the chassis that it is in; that it is not told is no fault of the machine."""
        try:
            if self._meter is None:
                self._meter = self._path_of_meter(system)
            path, alone = self._meter
            meter = self._client.get(path) if path else {}
        except DeviceError:
            return None
        reading = number(meter, "PowerWatts", "Reading") if alone else None
        return words.watts_of_power(meter, self._found, alone=alone) if reading is None else reading

    def _path_of_meter(self, system: Json) -> tuple[str, bool]:
        """The document that tells a draw, empty if none does; and whether the draw is that of this system alone."""
        chassis = link(system, "Links", "Chassis", 0)
        if chassis is None:
            return "", False
        document = self._client.get(chassis)
        alone = len(items(document, "Links", "ComputerSystems")) <= 1
        metrics = link(document, "EnvironmentMetrics") if alone else None
        return metrics or link(document, "Power") or "", alone


def _last(path: str) -> str:
    return path.rpartition("/")[2]
