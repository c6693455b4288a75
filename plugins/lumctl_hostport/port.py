"""The driver: ethtool reads the module, ip switches the interface, lldpd says who is heard.

Switching the interface off switches the laser off on NICs that tie the two (the usual case; a firmware that keeps the
link up for a management controller does not, and then the read-back, which is the interface's, cannot show it).
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
            OutcomeUnknownError: the host took the command and could not be asked any more.
            InconsistentError: the host took the command and the interface did not follow.
        """
        word = "up" if enabled else "down"
        # In one command: on a host each costs a session, a shell and a round trip.
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
                f"{self.context.device}: {self._interface} was set {word} and is not",
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
        """Have lldpd say the mark, and send now instead of at its next turn."""
        self._run(mark_command(mark))

    def neighbours(self) -> tuple[Neighbour, ...]:
        """Whom this interface hears, freshest first."""
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
            raise UnsupportedError(f"{self.context.device} is behind no host: this driver works through one")
        return self.context.shell

    def _asked(self, command: str) -> CommandResult:
        """Run a command that changes nothing: that it did not end leaves no doubt about the interface."""
        try:
            return self._run(command)
        except OutcomeUnknownError as error:
            raise DeviceUnreachableError(f"{self.context.device} was not read: {error.message}") from error

    def _run(self, command: str, then: str = "") -> CommandResult:
        """Run a command that must succeed; what the host says against it becomes the error's text.

        ``then``, which anybody may run, follows it by the same shell: whether that succeeded, the result tells.
        """
        context = self.context
        whole = f"{command} && {then}" if then else command
        result = self._shell.run(f"sudo -n {whole}" if context.sudo else whole, timeout_s=context.timeout_s)
        if result.exit_status == 0 or (then and _said(result).startswith(f"{then.split(maxsplit=1)[0]}:")):
            return result
        if result.exit_status < 0:
            raise OutcomeUnknownError(
                f"{context.device}: {command}: the host does not say how it ended; it may have acted",
                hint="read the device back",
            )
        said = _said(result)
        message = f"{context.device}: {command}: {said}"
        if result.exit_status == COMMAND_NOT_FOUND:
            raise UnsupportedError(message, hint=f"install {command.split(maxsplit=1)[0]} on the host")
        hint = "let the user run it: sudo in the host's ssh settings, and a sudoers line" if is_denial(said) else None
        raise DeviceRefusedError(message, hint=hint)


def _said(result: CommandResult) -> str:
    return first_line(result.stderr) or first_line(result.stdout) or f"exit status {result.exit_status}"
