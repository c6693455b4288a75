"""Faults between a driver and the host that it uses: faults of a command between the driver and the host."""

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult, HostShell

if TYPE_CHECKING:
    import threading


class ShellFault(StrEnum):
    """A fault of a command."""

    LOST_BEFORE = "lost-before"
    """No session can be opened: the command does not run."""
    LOST_AFTER = "lost-after"
    """The command runs, but its outcome is lost."""
    NO_STATUS = "no-status"
    """The command runs, but the host gives no exit status."""
    DENIED = "denied"
    """The host denies access: the command does not run."""
    GARBLED = "garbled"
    """The command runs, but its output is noise."""


class FaultyShell:
    """A host's shell with a fault that strikes after ``after`` commands, only once if it ``passes``.

    ``struck`` counts how often each fault was met, ``ran`` the commands that were requested.
    If ``hung`` is an event, every command waits for it, at most its own time limit, and then fails.
    """

    def __init__(self, shell: HostShell) -> None:
        self._shell = shell
        self.struck: Counter[ShellFault] = Counter()
        self.ran = 0
        self.hung: threading.Event | None = None
        self.set(None)

    def set(self, fault: ShellFault | None, *, after: int = 0, passes: bool = False) -> None:
        """Set the fault from now on; ``None``: no fault."""
        self._fault, self._after, self._passes = fault, after, passes

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run a command, unless the fault prevents it."""
        self.ran += 1
        if self.hung is not None:
            self.hung.wait(timeout_s)
            raise OutcomeUnknownError(f"{command!r} did not end in time; it may have taken effect")
        fault = self._fault if self._after <= 0 else None
        self._after -= 1
        if fault is not None:
            self.struck[fault] += 1
            if self._passes:
                self.set(None)
        if fault is ShellFault.LOST_BEFORE:
            raise DeviceUnreachableError("the host does not answer")
        if fault is ShellFault.DENIED:
            return CommandResult(1, "", "Operation not permitted\n")
        result = self._shell.run(command, timeout_s=timeout_s)
        if fault is ShellFault.LOST_AFTER:
            raise OutcomeUnknownError(f"{command!r} did not end in time; it may have taken effect")
        if fault is ShellFault.NO_STATUS:
            return CommandResult(-1, "", "")
        return CommandResult(result.exit_status, "\x00\ufffd?\n", "") if fault is ShellFault.GARBLED else result
