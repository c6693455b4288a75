"""The calls of each kind of driver, as recordings store them and replays answer them."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lumctl.devices.protocols import PROTOCOLS, DriverContext
from lumctl.devices.types import Capability

SCHEMA = "lumctl/device-recording/v1"
MOST_BYTES = 64 * 1024 * 1024
"""Default size limit of a recording."""

WRITES = frozenset(
    {
        "commit",
        "confirm",
        "roll_back",
        "set_port",
        "set_label",
        "set_transmit",
        "set_channel",
        "set_output_power",
        "announce",
        "set_power",
        "reset",
    }
)
"""The calls that may change the device. All others count as reads, including those that only compute."""

_NEEDS = {
    "read_states": Capability.READ_STATES,
    "read_powers": Capability.READ_POWERS,
    "read_temperature": Capability.READ_TEMPERATURE,
    "read_alarms": Capability.READ_ALARMS,
    "read_progress": Capability.PROGRESS,
    "read_ports": Capability.READ_PORTS,
    "set_port": Capability.SET_PORTS,
    "set_label": Capability.SET_LABELS,
    "read_optics": Capability.READ_OPTICS,
    "set_transmit": Capability.SET_TRANSMIT,
    "transmitting": Capability.SET_TRANSMIT,
    "set_channel": Capability.SET_CHANNEL,
    "set_output_power": Capability.SET_OUTPUT_POWER,
    "announce": Capability.READ_NEIGHBOURS,
    "neighbours": Capability.READ_NEIGHBOURS,
    "set_power": Capability.SET_POWER,
    "reset": Capability.RESET,
}


@cache
def signatures(kind: str) -> Mapping[str, inspect.Signature]:
    """The calls of a kind of driver by name, except ``close``."""
    protocol = PROTOCOLS[kind]
    names = [name for name in dir(protocol) if not name.startswith("_") and name != "close"]
    return {name: inspect.signature(getattr(protocol, name)) for name in names if callable(getattr(protocol, name))}


Ask = Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]
"""Makes a call for a stand-in of a driver: the stand-in, the name of the call, and its arguments."""


def forwarding(kind: str, ask: Ask) -> dict[str, Callable[..., Any]]:
    """The methods of a stand-in for a driver of a kind, by call; each passes its call to ``ask``."""

    def method(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return ask(self, name, args, kwargs)

        return call

    return {name: method(name) for name in signatures(kind)}


def bound(kind: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, defaults included, whether they were given by position or by name.

    Raises:
        TypeError: the call has other arguments.
    """
    names, defaults = _parameters(kind, name)
    given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or given.keys() != names.keys():
        signatures(kind)[name].bind(None, *args, **kwargs)  # raises with the reason
    return given


@cache
def _parameters(kind: str, name: str) -> tuple[Mapping[str, None], dict[str, Any]]:
    """The names of a call's parameters in order, and their defaults."""
    parameters = [each for each in signatures(kind)[name].parameters.values() if each.name != "self"]
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    return {each.name: None for each in parameters}, defaults


def need(name: str, arguments: Mapping[str, Any]) -> Capability | None:
    """The capability that a call needs; ``None`` if every driver of its kind supports the call."""
    if name == "commit" and arguments.get("revert_after_s") is not None:
        return Capability.CONFIRM_TIMER
    return _NEEDS.get(name)


def recording_name(kind: str, context: DriverContext) -> str:
    """The file name of a device's recording in a folder of recordings."""
    component = f"+{quote(context.component, safe='')}" if context.component else ""
    return f"{kind}-{quote(context.device, safe='')}{component}.jsonl"


def recording_path(kind: str, place: Path, context: DriverContext) -> Path:
    """The path of a recording: ``place`` itself, or the device's file in it if it is a folder."""
    return place / recording_name(kind, context) if place.is_dir() else place
