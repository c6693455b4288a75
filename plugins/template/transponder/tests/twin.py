"""A twin of a host with one module: it answers the commands that the driver runs, and tells what the laser does."""

import json
import shlex

from lumctl.devices.protocols import CommandResult


class Twin:
    """A shell on the host, as a driver is given one."""

    def __init__(self) -> None:
        self.laser = "on"
        self.rx_mw = 0.42
        self.refuses = False
        self.sticks = False
        self.commands: list[str] = []

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run a command."""
        del timeout_s  # it answers at once
        self.commands.append(command)
        words = shlex.split(command.removeprefix("sudo -n "))
        if words == ["exmodule", "show", "eth0"]:
            return CommandResult(0, json.dumps(self.module), "")
        if words[:3] != ["exmodule", "laser", "eth0"]:
            return CommandResult(1, "", f"no module at {words[-1]}\n")
        if self.refuses or not command.startswith("sudo"):
            return CommandResult(1, "", "permission denied\n")
        if not self.sticks:
            self.laser = words[3]
        return CommandResult(0, "", "")

    @property
    def module(self) -> dict[str, object]:
        """The module, as it is printed."""
        limits = {"low_alarm": 0.05, "low_warning": 0.1, "high_warning": 2.0, "high_alarm": 3.0}
        return {
            "vendor": "Example",
            "laser": self.laser,
            "rx_mw": self.rx_mw,
            "tx_mw": 1.0 if self.laser == "on" else 0.0,
            "temperature_c": 41.5,
            "rx_limits_mw": limits,
        }
