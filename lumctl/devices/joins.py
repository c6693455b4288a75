"""Changes of joins (connections between ports) on a switch: checks and comparisons shared by all drivers. No I/O.

On an any-to-any switch every port may be the ingress, and the device may report either end of a join as the ingress.
So this module treats joins as pairs of partners. For a switch with separate inputs and outputs the result is the same.
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
            DeviceRefusedError: a port does not exist.
        """
        strange = sorted(port for port in ports if not 0 <= port < self.port_count)
        if strange:
            named = ", ".join(map(str, strange))
            self.refuse(f"has no port {named}: they run from 0 to {self.port_count - 1}")

    def refuse(self, why: str) -> NoReturn:
        """Refuse in the name of the device.

        Raises:
            DeviceRefusedError: always.
        """
        raise DeviceRefusedError(f"{self.device} {why}")


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A checked change: the change as data, the joins to remove first, and the joins to make then."""

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
    """Check a change (ingress: egress, or ``None``) against the joins that the switch holds; return what to do.

    Raises:
        DeviceRefusedError: a port is out of range, on the wrong side, in use, or listed twice.
    """
    _check_sides(ports, wanted)
    after = _partners_after(ports, wanted)
    now = partners(held)
    for ingress, egress in wanted.items():
        owner = None if egress is None else now.get(egress)
        # On an any-to-any switch a change may name a join by either of its ends.
        if owner is not None and ingress != owner and not {owner, egress} & wanted.keys():
            ports.refuse(
                f"cannot connect port {ingress} to {egress}: port {owner}, which the change does not list, is "
                "connected to it"
            )
    # A port that keeps its partner is not among them: a join is not interrupted without need.
    moved = {port for port in wanted if port in now and now[port] != after.get(port)}
    return JoinPlan(
        changes=tuple(JoinChange(ingress, now.get(ingress), egress) for ingress, egress in sorted(wanted.items())),
        remove=tuple((ingress, egress) for ingress, egress in sorted(held.items()) if moved & {ingress, egress}),
        add=tuple(sorted(_made(now, wanted))),
    )


def difference(held: Joins, changes: Iterable[JoinChange]) -> tuple[JoinChange, ...]:
    """The changes that a switch with these joins lacks."""
    changes = tuple(changes)
    now = partners(held)
    after = partners({change.ingress: change.after for change in changes if change.after is not None})
    # A named port that is to have no egress of its own may still be the egress of another named port.
    return tuple(
        JoinChange(change.ingress, now.get(change.ingress), change.after)
        for change in changes
        if now.get(change.ingress) != after.get(change.ingress)
    )


def judge(ports: Ports, changes: Iterable[JoinChange], before: Joins, after: Joins, complaint: str) -> None:
    """Compare the joins of a switch after a write with those written, and with the error that it reported, if any.

    Raises:
        DeviceRefusedError: the switch reported an error, and its joins did not change.
        InconsistentError: the switch reports other joins than were written.
    """
    changes = tuple(changes)
    left = difference(after, changes)
    if not left:
        return
    # Only these ports count, because other users may change other joins at the same time.
    touched = {port for change in changes for port in (change.ingress, change.after) if port is not None}
    was, now = partners(before), partners(after)
    if complaint and all(was.get(port) == now.get(port) for port in touched):
        ports.refuse(f"refused the change: {complaint}; nothing changed")
    said = f", and returned: {complaint}" if complaint else " without a complaint"
    raise InconsistentError(
        f"{ports.device} reports {len(left)} of {len(changes)} connections that differ from what was written{said}",
        hint="read its state before you write anything else to it",
    )


def _check_sides(ports: Ports, wanted: Mapping[int, int | None]) -> None:
    ports.require(wanted)
    ports.require(egress for egress in wanted.values() if egress is not None)
    for ingress, egress in wanted.items():
        if ingress >= ports.input_count:
            ports.refuse(f"no light enters at port {ingress}: the inputs are 0 to {ports.input_count - 1}")
        if egress is not None and (egress < ports.first_egress or egress == ingress):
            last = ports.port_count - 1
            ports.refuse(f"cannot connect port {ingress} to {egress}: the outputs are {ports.first_egress} to {last}")


def _partners_after(ports: Ports, wanted: Mapping[int, int | None]) -> dict[int, int]:
    """The partner of each listed port after the change; a port has at most one."""
    after: dict[int, int] = {}
    for ingress, egress in wanted.items():
        if egress is None:
            continue
        for port, other in ((ingress, egress), (egress, ingress)):
            if after.setdefault(port, other) != other:
                ports.refuse(f"cannot connect port {port} twice: to {after[port]} and to {other}")
    return after


def _made(now: Joins, wanted: Mapping[int, int | None]) -> set[tuple[int, int]]:
    """The joins that do not exist yet. Each is listed once, with the ingress under which the change lists it first."""
    made: set[tuple[int, int]] = set()
    for ingress, egress in wanted.items():
        if egress is not None and now.get(ingress) != egress and (egress, ingress) not in made:
            made.add((ingress, egress))
    return made
