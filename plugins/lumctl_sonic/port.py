"""The driver: ``sfputil`` or the state database gives the module's values, lldpd the neighbours.

``sfputil`` needs root; SONiC grants it to every user through ``sudo``, for this command only. If it cannot be run, or
the platform does not support it, the driver reads the database. SONiC's daemon updates that about once a minute, and
the reading then has the time of that update. lldpd runs in a container; the host has wrappers of its tools with the
same names. The driver always reads the whole module, even if several ports share it.
"""

import re
import shlex
import time
from dataclasses import replace
from typing import ClassVar

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.formats.complaint import COMMAND_NOT_FOUND, first_line, is_denial
from lumctl.devices.formats.lldp import mark_command, neighbours_of, read_lldp
from lumctl.devices.protocols import CommandResult, DriverContext, HostShell
from lumctl.devices.types import Capability, Neighbour, OpticsReading
from lumctl_sonic import eeprom, tables
from lumctl_sonic.facts import reading_of

_NOT_IMPLEMENTED = 5
"""Exit status of ``sfputil`` on a platform that does not implement the query."""
_NOT_ROOT = "root privileges are required"
_MARK = re.compile(r"(?:[0-9a-fA-F]{2})+")
_LONGEST = 256 * 1024
_IN_CONTAINER = "docker exec -i lldp "


class SonicPort(BaseTransponder):
    """The module in one port (``EthernetN``) of one SONiC host; read only."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_OPTICS, Capability.READ_NEIGHBOURS})
    proven: ClassVar[str] = "OpenSSH's sshd with scripted tools; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._by_table = False

    def read_optics(self) -> OpticsReading:
        """The module's readings with its thresholds, read now or by SONiC's last update.

        Raises:
            DeviceRefusedError: no module is plugged in, there is no such port, or the answer is invalid.
        """
        deadline = time.monotonic() + self.context.timeout_s
        found = None if self._by_table else self._read_module(deadline)
        return self._read_tables(deadline) if found is None else found

    def announce(self, mark: str) -> None:
        """Have lldpd announce the mark, and send it at once instead of at its next interval."""
        if not _MARK.fullmatch(mark):
            raise DeviceRefusedError(
                f"{self.context.device}: {mark!r} does not consist of whole bytes; nothing was sent"
            )
        self._say(mark_command(mark), self._deadline())

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The neighbours that this port hears, most recent first."""
        try:
            text = self._say("lldpctl -f json", self._deadline()).stdout[:_LONGEST]
        except OutcomeUnknownError as error:
            raise self._silent(error) from error
        heard = read_lldp(text)
        if heard is None:
            raise DeviceRefusedError(f"{self.context.device}: lldpctl gave no readable answer")
        return neighbours_of(heard).get(self.context.interface, ())

    def _read_module(self, deadline: float) -> OpticsReading | None:
        """Read the module itself; ``None`` if this host does not allow it, which is remembered for later calls."""
        taken_at, port = self.context.now(), self.context.interface
        result = self._asked(self._privileged(f"sfputil show eeprom -d -p {shlex.quote(port)}"), deadline)
        text = result.stdout[:_LONGEST]
        said = first_line(result.stderr) or first_line(text)
        if result.exit_status != 0:
            cannot = result.exit_status in {COMMAND_NOT_FOUND, _NOT_IMPLEMENTED} or _NOT_ROOT in said.lower()
            if cannot or is_denial(said):
                self._by_table = True
                return None
            raise DeviceRefusedError(f"{self.context.device}: sfputil on {port}: {said or 'no reason given'}")
        match eeprom.slot_of(text, port):
            case eeprom.Slot.MODULE:
                return reading_of(eeprom.facts_of(text), taken_at)
            case eeprom.Slot.COPPER:
                return OpticsReading(taken_at, optical=False)
            case eeprom.Slot.EMPTY:
                raise self._empty()
        raise DeviceRefusedError(f"{self.context.device}: sfputil reports nothing about {port}: {said}")

    def _read_tables(self, deadline: float) -> OpticsReading:
        device, port = self.context.device, self.context.interface
        # No root is needed here: the database answers every user of the host.
        result = self._asked(tables.command_for(port), deadline)
        if result.exit_status == COMMAND_NOT_FOUND:
            raise UnsupportedError(f"{device}: its host has neither sfputil nor sonic-db-cli: it does not run SONiC")
        facts = tables.facts_of(result.stdout[:_LONGEST]) if result.exit_status == 0 else None
        if facts is None:
            said = first_line(result.stderr) or first_line(result.stdout)
            raise DeviceRefusedError(f"{device}: SONiC's database contains nothing about {port}: {said}")
        if not facts:
            raise self._empty()
        reading = reading_of(facts, self.context.now())
        if not reading.optical:
            return reading
        updated_at = tables.updated_at(facts)
        if updated_at is None:
            raise DeviceRefusedError(
                f"{device}: this release does not report when it read {port}, and its module cannot be read directly",
                hint=(
                    "set sudo: true in the host's ssh settings; SONiC allows every user to run sfputil show through "
                    "sudo"
                ),
            )
        # If the host's clock is ahead of ours, the reading must not get a time in the future.
        return replace(reading, taken_at=min(updated_at, reading.taken_at))

    def _say(self, command: str, deadline: float) -> CommandResult:
        """Run one of lldpd's tools, by the host's wrapper or in the container."""
        result = self._run(self._privileged(command), deadline)
        if result.exit_status == COMMAND_NOT_FOUND:
            result = self._run(self._privileged(f"{_IN_CONTAINER}{command}"), deadline)
        if result.exit_status == 0:
            return result
        said = first_line(result.stderr) or first_line(result.stdout) or f"exit status {result.exit_status}"
        message = f"{self.context.device}: {command}: {said}"
        if result.exit_status == COMMAND_NOT_FOUND:
            raise UnsupportedError(message, hint="the host needs lldpctl, or docker with a container called lldp")
        hint = (
            "allow the user to run it: sudo in the host's ssh settings, or the group docker"
            if is_denial(said)
            else None
        )
        raise DeviceRefusedError(message, hint=hint)

    def _asked(self, command: str, deadline: float) -> CommandResult:
        """Run a command that changes nothing: even if it does not end, the module is unchanged."""
        try:
            return self._run(command, deadline)
        except OutcomeUnknownError as error:
            raise self._silent(error) from error

    def _run(self, command: str, deadline: float) -> CommandResult:
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeviceUnreachableError(f"{self.context.device}: its host took too long; nothing more was sent")
        result = self._shell.run(command, timeout_s=left)
        if result.exit_status < 0:
            raise OutcomeUnknownError(
                f"{self.context.device}: {command}: the host does not report how it ended; it may have taken effect"
            )
        return result

    def _privileged(self, command: str) -> str:
        return f"sudo -n {command}" if self.context.sudo else command

    def _deadline(self) -> float:
        return time.monotonic() + self.context.timeout_s

    def _empty(self) -> DeviceRefusedError:
        return DeviceRefusedError(f"{self.context.device}: no module is plugged into {self.context.interface}")

    def _silent(self, error: OutcomeUnknownError) -> DeviceUnreachableError:
        return DeviceUnreachableError(f"{self.context.device} could not be read: {error.message}")

    @property
    def _shell(self) -> HostShell:
        if self.context.shell is None:
            raise UnsupportedError(f"{self.context.device} has no host: this driver works through one")
        return self.context.shell
