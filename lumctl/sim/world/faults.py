"""Faults that can be injected: their kinds, the components that each fits, and the errors if one does not fit."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import nearest


class FaultKind(StrEnum):
    """The faults of a simulated component."""

    GPU_LOST = "gpu-lost"
    PROCESS_DIED = "process-died"
    ECC = "ecc"
    ROW_REMAP_FAILED = "row-remap-failed"
    OVERHEAT = "overheat"
    THROTTLED = "throttled"
    NIC_LOST = "nic-lost"
    LINK_DOWN = "link-down"
    LINK_FLAP = "link-flap"
    DARK = "dark"
    DIM = "dim"
    STUCK_BAR = "stuck-bar"
    STUCK_CROSS = "stuck-cross"
    SLOW_HOST = "slow-host"
    HUNG_SMI = "hung-smi"
    UNREACHABLE = "unreachable"
    MESH_DOWN = "mesh-down"
    MESH_LYING = "mesh-lying"
    DEVICE_DOWN = "device-down"
    DEVICE_LYING = "device-lying"
    DEVICE_SLOW = "device-slow"
    DEVICE_CUT = "device-cut"
    DEVICE_REFUSE = "device-refuse"
    DEVICE_HALF = "device-half"
    ALARM = "alarm"
    SLOW_COMMIT = "slow-commit"


class ComponentKind(StrEnum):
    """The kinds of components that an id may have; those of devices are named as in the inventory."""

    HOST = "host"
    ACCELERATOR = "accelerator"
    TRANSPONDER = "transponder"
    MESH = "mesh"
    SWITCH = "switch"
    CHASSIS = "chassis"
    POWER = "power"
    PORT = "port"
    PUC = "puc"
    NIC = "nic"
    RECEIVER = "rx"
    CONVERTER = "converter"
    FIBRE = "fibre"

    @property
    def described(self) -> str:
        """The word for error messages, with its article."""
        article = "an" if self is ComponentKind.ACCELERATOR else "a"
        return f"{article} {_WORDS.get(self, self)}"


_WORDS = {
    ComponentKind.POWER: "power controller",
    ComponentKind.NIC: "host's NIC",
    ComponentKind.RECEIVER: "receiver",
    ComponentKind.CONVERTER: "media converter",
}
LANE_PARTS = (ComponentKind.RECEIVER, ComponentKind.CONVERTER, ComponentKind.FIBRE)
"""The parts of a transponder's lane, named as TRANSPONDER/rx and so on."""


@dataclass(frozen=True, slots=True)
class SimulatedFault:
    """One fault of one component. ``value`` is in the unit of its kind, see :data:`VALUES`."""

    component: str
    kind: FaultKind
    value: float | None
    since: float


@dataclass(frozen=True, slots=True)
class Value:
    """The meaning of ``--value`` for a kind. ``default`` is ``None`` if the default depends on the component."""

    meaning: str
    default: float | None
    least: float
    most: float = math.inf


VALUES: Mapping[FaultKind, Value] = {
    FaultKind.ECC: Value("uncorrectable errors", 1, 1),
    FaultKind.OVERHEAT: Value("degrees Celsius", None, 0),
    FaultKind.DIM: Value("dB of extra loss", 6, 0.1),
    FaultKind.SLOW_HOST: Value("seconds of delay before each answer", 5, 0),
    FaultKind.LINK_FLAP: Value("seconds down, then the same time up", 5, 0.5),
    FaultKind.DEVICE_SLOW: Value("seconds of delay before each answer", 5, 0),
    FaultKind.ALARM: Value("1 critical, 2 major, 3 minor, 4 warning", 1, 1, 4),
    FaultKind.SLOW_COMMIT: Value("seconds by which a change follows its answer", 5, 0),
}
SEVERITIES = ("CRITICAL", "MAJOR", "MINOR", "WARNING")
"""A simulated device's word for each value of the fault ``alarm``, from 1 on."""

_ACCELERATOR = (ComponentKind.ACCELERATOR,)
_LIGHT = (ComponentKind.TRANSPONDER, ComponentKind.PORT, ComponentKind.CONVERTER, ComponentKind.FIBRE)
_LIGHT_DEVICE = (ComponentKind.MESH, ComponentKind.SWITCH)
_DEVICE = (ComponentKind.MESH, ComponentKind.SWITCH, ComponentKind.CHASSIS, ComponentKind.POWER)
FITS: Mapping[FaultKind, tuple[ComponentKind, ...]] = {
    FaultKind.GPU_LOST: _ACCELERATOR,
    FaultKind.PROCESS_DIED: _ACCELERATOR,
    FaultKind.ECC: _ACCELERATOR,
    FaultKind.ROW_REMAP_FAILED: _ACCELERATOR,
    FaultKind.OVERHEAT: (*_ACCELERATOR, *_LIGHT_DEVICE),
    FaultKind.THROTTLED: _ACCELERATOR,
    FaultKind.LINK_DOWN: (ComponentKind.TRANSPONDER,),
    FaultKind.LINK_FLAP: (ComponentKind.TRANSPONDER,),
    FaultKind.NIC_LOST: (ComponentKind.NIC,),
    FaultKind.DARK: (*_LIGHT, ComponentKind.RECEIVER),
    FaultKind.DIM: _LIGHT,
    FaultKind.STUCK_BAR: (ComponentKind.PUC,),
    FaultKind.STUCK_CROSS: (ComponentKind.PUC,),
    FaultKind.SLOW_HOST: (ComponentKind.HOST,),
    FaultKind.HUNG_SMI: (ComponentKind.HOST,),
    FaultKind.UNREACHABLE: (ComponentKind.HOST,),
    FaultKind.MESH_DOWN: (ComponentKind.MESH,),
    FaultKind.MESH_LYING: (ComponentKind.MESH,),
    FaultKind.ALARM: _LIGHT_DEVICE,
    FaultKind.SLOW_COMMIT: (ComponentKind.MESH, ComponentKind.SWITCH),
    **dict.fromkeys((kind for kind in FaultKind if kind.startswith("device-")), _DEVICE),
}

STUCK = frozenset({FaultKind.STUCK_BAR, FaultKind.STUCK_CROSS})


def parse_fault(
    inventory: Inventory, component: str, word: str, value: float | None, *, since: float
) -> SimulatedFault:
    """Parse and check a requested fault.

    Raises:
        UsageError: the component or the kind is unknown, the kind does not fit, or the value is out of range.
    """
    kind = _kind(word, component)
    found = component_kinds(inventory, component)
    if not set(found) & set(FITS[kind]):
        raise UsageError(
            f"{kind} does not fit {component}, which is {found[0].described}",
            hint=_advice(inventory, component, found, kind),
        )
    return SimulatedFault(component, kind, _value(kind, value), since)


def component_kinds(inventory: Inventory, component: str) -> tuple[ComponentKind, ...]:
    """The kinds of the components that an id names (a host and its only accelerator may share a name).

    Raises:
        UsageError: nothing has this id.
    """
    named: dict[ComponentKind, Mapping[str, object]] = {
        ComponentKind.HOST: inventory.hosts,
        ComponentKind.ACCELERATOR: inventory.accelerators,
        ComponentKind.TRANSPONDER: inventory.transponders,
    }
    named[ComponentKind.FIBRE] = inventory.fibres
    for kind in _DEVICE:
        named[kind] = {d.id: d for d in inventory.devices.values() if d.kind == kind.value}
    found = tuple(kind for kind, ids in named.items() if component in ids)
    if found:
        return found
    device, separator, rest = component.partition("/")
    if separator and device in inventory.devices:
        return (_part_kind(inventory, device, rest),)
    whole, _, part = component.rpartition("/")
    if whole in inventory.transponders and part in LANE_PARTS:
        return (ComponentKind(part),)
    if whole in inventory.hosts and part == ComponentKind.NIC:
        return (ComponentKind.NIC,)
    near = nearest(component, (word for ids in named.values() for word in ids))
    known = (
        "a host, an accelerator, a transponder, a fibre, a device, DEVICE/port/N, MESH/puc/N, HOST/nic, "
        "or TRANSPONDER/fibre, /converter or /rx"
    )
    raise UsageError(
        f"component {component!r} is not in the inventory", hint=f"did you mean {near}?" if near else known
    )


def numbered(component: str) -> tuple[str, int]:
    """Device and number of ``DEVICE/port/12`` or ``DEVICE/puc/17``."""
    device, _, number = component.split("/")
    return device, int(number)


def _part_kind(inventory: Inventory, device: str, rest: str) -> ComponentKind:
    geometry = inventory.devices[device].geometry
    counts = {
        ComponentKind.PORT: inventory.devices[device].port_count,
        ComponentKind.PUC: geometry.puc_count if geometry else 0,
    }
    word, _, number = rest.partition("/")
    for kind, count in counts.items():
        if word == kind:
            # str.isdecimal also accepts digits of other scripts; the comparison with str(int()) rejects them.
            if number.isdecimal() and int(number) < count and str(int(number)) == number:
                return kind
            raise UsageError(
                f"{device} has no {kind} {number!r}", hint=f"valid numbers: 0 to {count - 1}" if count else None
            )
    raise UsageError(f"{device}/{rest} names nothing", hint=f"{device}/port/N or {device}/puc/N")


def _kind(word: str, component: str) -> FaultKind:
    try:
        return FaultKind(word)
    except ValueError:
        if component in [*FaultKind]:
            hint = f"the component comes first: lumctl sim fault {word} {component}"
            raise UsageError(f"{component!r} is a kind of fault, not a component", hint=hint) from None
        near = nearest(word, FaultKind)
        hint = f"did you mean {near}?" if near else f"one of: {', '.join(FaultKind)}"
        raise UsageError(f"{word!r} is not a known fault kind", hint=hint) from None


def _value(kind: FaultKind, value: float | None) -> float | None:
    wanted = VALUES.get(kind)
    if wanted is None:
        if value is not None:
            raise UsageError(f"{kind} takes no value")
        return None
    if value is None:
        return wanted.default
    if not math.isfinite(value) or value < wanted.least:
        raise UsageError(f"the value of {kind} ({wanted.meaning}) must be at least {wanted.least:g}, not {value:g}")
    if value > wanted.most or (wanted.most < math.inf and value != int(value)):
        raise UsageError(f"the value of {kind} must be one of: {wanted.meaning}; not {value:g}")
    return value


def _advice(inventory: Inventory, component: str, found: Iterable[ComponentKind], kind: FaultKind) -> str:
    """The parts of the component that the kind would fit, or else the kinds that fit the component."""
    parts: list[str] = []
    if ComponentKind.ACCELERATOR in FITS[kind]:
        parts = [a.id for a in inventory.accelerators_of(component)]
    elif ComponentKind.TRANSPONDER in FITS[kind]:
        parts = [t.id for t in inventory.transponders.values() if component in (t.accelerator, t.host)]
    if parts:
        return f"{kind} fits: {', '.join(parts)}"
    fitting = [k for k, kinds in FITS.items() if set(kinds) & set(found)]
    return f"faults of {component}: {', '.join(fitting)}"


class Faults:
    """The present faults, in the order of injection."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, FaultKind], SimulatedFault] = {}

    def add(self, fault: SimulatedFault) -> None:
        """Add a fault; it replaces the component's fault of the same kind, or its other stuck state."""
        for other in STUCK if fault.kind in STUCK else ():
            self._held.pop((fault.component, other), None)
        self._held[fault.component, fault.kind] = fault

    def remove(self, fault: SimulatedFault) -> None:
        """Remove a fault."""
        del self._held[fault.component, fault.kind]

    def get(self, component: str, kind: FaultKind) -> SimulatedFault | None:
        """The fault of this kind, if the component has it."""
        return self._held.get((component, kind))

    def has(self, component: str, kind: FaultKind) -> bool:
        """Whether the component has a fault of this kind."""
        return (component, kind) in self._held

    def value(self, component: str, kind: FaultKind) -> float | None:
        """The value of a fault; ``None`` if the component does not have the fault."""
        fault = self.get(component, kind)
        return fault.value if fault else None

    def of_kind(self, kind: FaultKind) -> list[SimulatedFault]:
        """All faults of one kind."""
        return [fault for fault in self._held.values() if fault.kind is kind]

    def of(self, component: str | None) -> list[SimulatedFault]:
        """All faults of a component; with ``None``, of all components."""
        return [fault for fault in self._held.values() if component in {None, fault.component}]
