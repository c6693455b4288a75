"""The driver ``hostport``, a transponder behind a host's interface.

ethtool reads the module, ip switches the interface, and lldpd reports the neighbours.

On most NICs the laser is off when the interface is off. But firmware that keeps the link up for a management controller
leaves the laser on. The read-back is that of the interface, so it cannot show this.
"""

import shlex
from typing import ClassVar

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import (
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.formats.complaint import COMMAND_NOT_FOUND, first_line, is_denial
from lumctl.devices.formats.ethtool import parse_ethtool_module
from lumctl.devices.formats.lldp import mark_command, parse_lldp
from lumctl.devices.protocols import CommandResult, HostShell
from lumctl.devices.types import Capability, Neighbour, OpticsReading

_INTERFACE_UP = 0x1
"""IFF_UP of the kernel's interface flags: switched on by the administrator, whether or not there is light."""


class HostPort(BaseTransponder):
    """One interface of one host."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.READ_OPTICS, Capability.SET_TRANSMIT, Capability.READ_NEIGHBOURS}
    )
    proven: ClassVar[str] = "OpenSSH's sshd, lldpd, simulator; not run on hardware"

    def read_optics(self) -> OpticsReading:
        """The module as ``ethtool -m`` prints it."""
        taken_at = self.context.now()
        return parse_ethtool_module(self._asked(f"ethtool -m {self._interface}").stdout, taken_at)

    def set_transmit(self, enabled: bool) -> None:
        """Switch the interface, and read it back.

        Raises:
            OutcomeUnknownError: the host took the command, and the interface could not be read afterwards.
            InconsistentError: the host took the command, and the interface did not change.
        """
        word = "up" if enabled else "down"
        # Set and read in one command: each command on a host costs a session, a shell and a round trip.
        result = self._run(f"ip link set dev {self._interface} {word}", then=self._reading)
        in_doubt = f"{self._interface} was set {word} just before"
        if result.exit_status != 0:
            raise OutcomeUnknownError(f"{self.context.device}: {self._reading}: {_said(result)}; {in_doubt}")
        try:
            took = self._is_up(result) is enabled
        except DeviceError as error:
            raise OutcomeUnknownError(f"{error.message}; {in_doubt}") from error
        if not took:
            raise InconsistentError(
                f"{self.context.device}: {self._interface} was set {word} but did not change",
                hint="something on the host may manage this interface, such as NetworkManager",
            )

    def transmitting(self) -> bool:
        """Whether the interface is switched on."""
        return self._is_up(self._asked(self._reading))

    def _is_up(self, flags: CommandResult) -> bool:
        text = flags.stdout.strip()
        try:
            return bool(int(text, 16) & _INTERFACE_UP)
        except ValueError:
            raise DeviceRefusedError(f"{self.context.device}: the flags of {self._interface} read {text!r}") from None

    def announce(self, mark: str) -> None:
        """Have lldpd announce the mark, and send it at once instead of at its next interval."""
        self._run(mark_command(mark))

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The neighbours that this interface hears, most recent first."""
        return parse_lldp(self._asked("lldpctl -f json").stdout).get(self.context.interface, ())

    @property
    def _interface(self) -> str:
        return shlex.quote(self.context.interface)

    @property
    def _reading(self) -> str:
        return f"cat /sys/class/net/{self._interface}/flags"

    @property
    def _shell(self) -> HostShell:
        if self.context.shell is None:
            raise UnsupportedError(f"{self.context.device} has no host: this driver works through one")
        return self.context.shell

    def _asked(self, command: str) -> CommandResult:
        """Run a command that changes nothing: even if it does not end, the interface is unchanged."""
        try:
            return self._run(command)
        except OutcomeUnknownError as error:
            raise DeviceUnreachableError(f"{self.context.device} could not be read: {error.message}") from error

    def _run(self, command: str, then: str = "") -> CommandResult:
        """Run a command that must succeed; an error message of the host becomes the error's text.

        The same shell then runs ``then``, a command that needs no privileges; the result tells whether it succeeded.
        """
        context = self.context
        whole = f"{command} && {then}" if then else command
        result = self._shell.run(f"sudo -n {whole}" if context.sudo else whole, timeout_s=context.timeout_s)
        # Both commands share one exit status, so an error of the second is recognized by the name before it.
        if result.exit_status == 0 or (then and _said(result).startswith(f"{then.split(maxsplit=1)[0]}:")):
            return result
        if result.exit_status < 0:
            raise OutcomeUnknownError(
                f"{context.device}: {command}: the host does not report how it ended; it may have taken effect",
                hint="read the device back",
            )
        said = _said(result)
        message = f"{context.device}: {command}: {said}"
        if result.exit_status == COMMAND_NOT_FOUND:
            raise UnsupportedError(message, hint=f"install {command.split(maxsplit=1)[0]} on the host")
        hint = (
            "allow the user to run it: sudo in the host's ssh settings, and a sudoers line" if is_denial(said) else None
        )
        raise DeviceRefusedError(message, hint=hint)


def _said(result: CommandResult) -> str:
    return first_line(result.stderr) or first_line(result.stdout) or f"exit status {result.exit_status}"
