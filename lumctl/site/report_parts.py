"""What a report of one component is made of: readings, ports, differences, and what could not be read."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lumctl.devices.types import Alarm
from lumctl.errors import LumctlError
from lumctl.health.states import Finding, State
from lumctl.inventory.components import Component, Part
from lumctl.inventory.wiring import Circuit
from lumctl.site.roll_call import Answer, open_driver
from lumctl.site.site import Site

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value that a component told now, in its unit; ``limits`` are the component's own, in the same unit."""

    name: str
    value: float | str | bool | None
    unit: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def dark(self) -> bool:
        """Whether it is a power of no light at all."""
        return self.value == -math.inf


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a mesh or a switch: what it is joined to, who sits there, and what the device says of it."""

    port: int
    side: str
    lanes: tuple[str, ...] = ()
    joined: int | None = None
    enabled: bool | None = None
    failed: bool | None = None
    label: str | None = None
    power_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the record and what was read back disagree."""

    component: str
    record: str
    device: str


@dataclass
class Report:
    """Everything that is told of one component. ``notes`` are what could not be read, and what a person should know."""

    component: Component
    answer: Answer
    readings: list[Reading] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """What health finds in the readings of a mesh or a switch, at this one look."""
    ports: list[Port] = field(default_factory=list)
    parts: list[Answer] = field(default_factory=list)
    circuits: list[Circuit] = field(default_factory=list)
    record: str | None = None
    """What the program believes that it holds, in words."""
    certain: bool = False
    """Whether the record is one to go by."""
    read_back: bool | None = None
    """Whether the device itself was asked that; ``None`` where there is nothing to ask."""
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, what: str, ask_it: Callable[[], T]) -> T | None:
        """Ask for one more thing; that it could not be read is a note."""
        try:
            return ask_it()
        except LumctlError as error:
            self.notes.append(f"{what}: {error.message}")
            return None


def whole(component: Component) -> Component:
    """What is asked for a port or a PUC: its device."""
    if component.part in {Part.PORT, Part.PUC}:
        return Component(str(component.device), Part.DEVICE, component.rack, component.device)
    return component


def driver_if_well(site: Site, made: Report) -> Any:
    """The driver, if the component answers: one that does not is not asked again and again."""
    return open_driver(site, whole(made.component)) if made.answer.state is State.OK else None
