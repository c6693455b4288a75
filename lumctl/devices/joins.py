"""What a change of joins does to a switch: what drivers of switches check, write and compare alike. No I/O.

Of an any-to-any switch every port may be named as the ingress, and either end of a join may be told as one. So joins
are looked at as pairs of partners here; where inputs and outputs are apart, that is the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from lumctl.devices.errors import DeviceRefusedError, InconsistentError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import JoinChange

Joins = Mapping[int, int]
"""Ingress port -> egress port."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one switch as the inventory states them: inputs first. Any-to-any: every port is an input."""

    device: str
    port_count: int
    input_count: int

    @property
    def any_to_any(self) -> bool:
        """Whether any port may be joined to any other."""
        return self.input_count == self.port_count

    @property
    def first_egress(self) -> int:
        """The lowest port that may be an egress."""
        return 0 if self.any_to_any else self.input_count

    def require(self, ports: Iterable[int]) -> None:
        """Check that all these ports exist.

        Raises:
            DeviceRefusedError: one does not.
        """
        strange = sorted(port for port in ports if not 0 <= port < self.port_count)
        if strange:
            named = ", ".join(map(str, strange))
            self.refuse(f"has no port {named}: they run from 0 to {self.port_count - 1}")

    def refuse(self, why: str) -> NoReturn:
        """Say no in the name of the device.

        Raises:
            DeviceRefusedError: always.
        """
        raise DeviceRefusedError(f"{self.device} {why}")


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A change that was checked: what it is as data, which joins are to be taken away first, and which made then."""

    changes: tuple[JoinChange, ...]
    remove: tuple[tuple[int, int], ...]
    add: tuple[tuple[int, int], ...]


def ports_of(context: DriverContext) -> Ports:
    """The ports of the switch that a driver was opened for."""
    return Ports(context.device, context.port_count, context.input_count)


def partners(joins: Joins) -> dict[int, int]:
    """Each joined port -> the port at the other end."""
    return {egress: ingress for ingress, egress in joins.items()} | dict(joins)


def plan(ports: Ports, held: Joins, wanted: Mapping[int, int | None]) -> JoinPlan:
    """Check a change (ingress: egress, or ``None``) against what the switch holds, and say what there is to do.

    Raises:
        DeviceRefusedError: a port is out of range, or not of the side it is named for, or in use, or named twice.
    """
    _check_sides(ports, wanted)
    after = _partners_after(ports, wanted)
    now = partners(held)
    for ingress, egress in wanted.items():
        owner = None if egress is None else now.get(egress)
        if owner is not None and ingress != owner and not {owner, egress} & wanted.keys():
            ports.refuse(f"cannot join port {ingress} to {egress}: port {owner} is joined to it, which is not named")
    moved = {port for port in wanted if port in now and now[port] != after.get(port)}
    return JoinPlan(
        changes=tuple(JoinChange(ingress, now.get(ingress), egress) for ingress, egress in sorted(wanted.items())),
        remove=tuple((ingress, egress) for ingress, egress in sorted(held.items()) if moved & {ingress, egress}),
        add=tuple(sorted(_made(now, wanted))),
    )


def difference(held: Joins, changes: Iterable[JoinChange]) -> tuple[JoinChange, ...]:
    """What of these changes a switch that holds these joins does not show."""
    changes = tuple(changes)
    now = partners(held)
    after = partners({change.ingress: change.after for change in changes if change.after is not None})
    # A port that is to have no egress of its own may be the egress of another that is named.
    return tuple(
        JoinChange(change.ingress, now.get(change.ingress), change.after)
        for change in changes
        if now.get(change.ingress) != after.get(change.ingress)
    )


def judge(ports: Ports, changes: Iterable[JoinChange], before: Joins, after: Joins, complaint: str) -> None:
    """Hold what a switch shows after a write against what was written, and against what it said to it, if anything.

    Raises:
        DeviceRefusedError: it complained, and holds what it held.
        InconsistentError: it shows something else than was written.
    """
    changes = tuple(changes)
    left = difference(after, changes)
    if not left:
        return
    touched = {port for change in changes for port in (change.ingress, change.after) if port is not None}
    was, now = partners(before), partners(after)
    if complaint and all(was.get(port) == now.get(port) for port in touched):
        ports.refuse(f"refused the change: {complaint}; nothing changed")
    said = f", which it answered with: {complaint}" if complaint else " without a complaint"
    raise InconsistentError(
        f"{ports.device} shows {len(left)} of {len(changes)} joins otherwise than they were written{said}",
        hint="read what it holds now before anything else is written to it",
    )


def _check_sides(ports: Ports, wanted: Mapping[int, int | None]) -> None:
    ports.require(wanted)
    ports.require(egress for egress in wanted.values() if egress is not None)
    for ingress, egress in wanted.items():
        if ingress >= ports.input_count:
            ports.refuse(f"takes no light in at port {ingress}: its inputs are 0 to {ports.input_count - 1}")
        if egress is not None and (egress < ports.first_egress or egress == ingress):
            last = ports.port_count - 1
            ports.refuse(f"cannot join port {ingress} to {egress}: its outputs are {ports.first_egress} to {last}")


def _partners_after(ports: Ports, wanted: Mapping[int, int | None]) -> dict[int, int]:
    """The partners that the named ports shall have; each has one at most."""
    after: dict[int, int] = {}
    for ingress, egress in wanted.items():
        if egress is None:
            continue
        for port, other in ((ingress, egress), (egress, ingress)):
            if after.setdefault(port, other) != other:
                ports.refuse(f"cannot join port {port} twice: to {after[port]} and to {other}")
    return after


def _made(now: Joins, wanted: Mapping[int, int | None]) -> set[tuple[int, int]]:
    """The joins that are not there yet, each once, from whichever end it was named first."""
    made: set[tuple[int, int]] = set()
    for ingress, egress in wanted.items():
        if egress is not None and now.get(ingress) != egress and (egress, ingress) not in made:
            made.add((ingress, egress))
    return made
