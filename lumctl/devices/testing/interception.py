"""Intercepts a driver's way, shell or address to inject faults, if the author supplies none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lumctl.devices.errors import DeviceError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.bridge import Bridge, way_of
from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault
from lumctl.devices.testing.shell_faults import FaultyShell, ShellFault
from lumctl.devices.testing.time_limit import bounded, closing

Opens = Callable[[DriverContext], Any]
_PARTS = 8
_ANSWER_FAULTS = (WayFault.BROKEN_ANSWER, WayFault.CUT_ANSWER, WayFault.SILENT, WayFault.GARBAGE)
_NO_ANSWERS = (b"?\n", b"\n", b"error 42: busy\r\n")


@dataclass(frozen=True)
class Fault:
    """One fault: its description and its settings."""

    text: str
    trouble: Trouble | None = None
    command: tuple[ShellFault, int] | None = None


class Interception:
    """A way and a shell that inject faults.

    Drivers opened with ``context`` use them; ``unhurried`` does too, but keeps the device's own time limit.
    """

    def __init__(
        self, context: DriverContext, way: FaultyWay, shell: FaultyShell | None, bridge: Bridge | None = None
    ) -> None:
        self.way, self.shell, self.context = way, shell, context
        self.unhurried = context
        self._bridge = bridge

    @property
    def passed(self) -> bool:
        """Whether a driver has used this way."""
        return self.way.opened > 0 or (self.shell is not None and self.shell.ran > 0)

    @property
    def attempts(self) -> int:
        """Connections and commands so far."""
        return self.way.opened + (self.shell.ran if self.shell is not None else 0)

    def hurry(self, timeout_s: float) -> None:
        """Set how long drivers of ``context`` wait for a silent device."""
        self.context = replace(self.context, timeout_s=timeout_s)

    def heal(self) -> None:
        """End all faults, and release the calls that wait."""
        self.way.trouble = None
        if self._bridge is not None:
            self._bridge.gone(gone=False)
        self.way.over.set()
        self.way.over.clear()
        if self.shell is not None:
            self.shell.set(None)
            hung, self.shell.hung = self.shell.hung, None
            if hung is not None:
                hung.set()

    def set(self, fault: Fault) -> None:
        """Start a fault."""
        self.way.trouble = fault.trouble
        if self._bridge is not None:
            self._bridge.gone(gone=fault.trouble is not None and fault.trouble.fault is WayFault.REFUSED)
        if self.shell is not None and fault.command is not None:
            self.shell.set(fault.command[0], after=fault.command[1])

    def gone(self) -> Fault:
        """The device cannot be reached at all."""
        return Fault("the device is gone", Trouble(WayFault.REFUSED), (ShellFault.LOST_BEFORE, 0))

    def faults_of(self, act: Callable[[], object], *, sending: bool) -> list[Fault]:
        """The faults to try on an act; the act runs once without faults to count its bytes and commands."""
        sent, came, ran = self.way.sent, self.way.came, self.shell.ran if self.shell else 0
        act()
        found = []
        if self.shell is not None and self.shell.ran > ran:
            found = [
                Fault(f"{fault} at command {at + 1}", command=(fault, at))
                for at in range(min(self.shell.ran - ran, _PARTS))
                for fault in ShellFault
            ]
        sent, came = self.way.sent - sent, self.way.came - came
        if came:
            found += [
                Fault(f"{fault} after {after} bytes of the answer", Trouble(fault, after))
                for fault in _ANSWER_FAULTS
                if self._bridge is None or fault is not WayFault.SILENT  # on a bridge it takes the whole time limit
                for after in _spread(came)
            ]
            found += [Fault(f"the answer is {text!r}", Trouble(WayFault.GARBAGE, text=text)) for text in _NO_ANSWERS]
        if sending and sent:
            found += [
                Fault(f"the connection breaks after {after} sent bytes", Trouble(WayFault.CUT_SENDING, after))
                for after in _spread(sent)
            ]
        return [*found, self.gone()]

    def silent(self, after: int = 0) -> Fault:
        """The device accepts connections and never answers."""
        return Fault("the device is silent", Trouble(WayFault.SILENT, after, lasts=True))

    def endless(self) -> Fault:
        """The device answers byte by byte without end."""
        return Fault("the answer never ends", Trouble(WayFault.DRIPPING, lasts=True))


def _spread(count: int) -> list[int]:
    """Positions from the first byte to the last."""
    return sorted({0, count - 1, *(count * part // _PARTS for part in range(1, _PARTS))})


@contextmanager
def intercepted(context: DriverContext, opens: Opens, probe: Callable[[Any], object]) -> Iterator[Interception | None]:
    """Intercept traffic between drivers and their device; ``None`` if they reach it in a way unknown to the kit.

    ``probe`` reads from the device with a driver. If no traffic is seen then, the driver connects by itself, and a
    server on loopback replaces its address.
    """
    shell = FaultyShell(context.shell) if context.shell is not None else None
    way = FaultyWay(context.way)
    direct = Interception(replace(context, way=way, shell=shell), way, shell)
    if _passes(direct, opens, probe):
        yield _cleared(direct)
        return
    own = way_of(context.address)
    if own is None:
        yield None
        return
    way = FaultyWay(own)
    with Bridge(context.address, way) as bridge:
        beside = Interception(replace(context, address=bridge.address), way, None, bridge)
        yield _cleared(beside) if _passes(beside, opens, probe) else None
        way.over.set()


def _passes(interception: Interception, opens: Opens, probe: Callable[[Any], object]) -> bool:
    with closing(bounded(lambda: opens(interception.context))) as driver, contextlib.suppress(DeviceError):
        bounded(lambda: probe(driver))
    return interception.passed


def _cleared(interception: Interception) -> Interception:
    interception.heal()
    return interception
