"""Answers of a SONiC host in the forms of its public sources, with values of our own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lumctl_sonic import SonicPort

from lumctl.devices.protocols import CommandResult, DriverContext

ANSWERS = Path(__file__).parent / "answers"


@dataclass
class Host:
    """A SONiC host as a shell sees it: the answer to a command is that of the first word that is known."""

    answers: dict[str, CommandResult] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def run(self, command, *, timeout_s):
        assert timeout_s > 0
        self.asked.append(command)
        answer = self.answers.get(command.removeprefix("sudo -n ").split()[0])
        if isinstance(answer, Exception):
            raise answer
        return answer or CommandResult(127, "", f"bash: {command.split()[0]}: command not found\n")


@pytest.fixture
def said() -> Callable[[str], str]:
    """What a file of this folder holds."""
    return lambda name: (ANSWERS / name).read_text()


@pytest.fixture
def sonic():
    """Open the driver of Ethernet0 on a host that answers so."""

    def opened(*, now=1_800_000_000.0, sudo=False, timeout_s=5.0, **answers):
        said = {
            name.replace("_", "-"): CommandResult(0, answer, "") if isinstance(answer, str) else answer
            for name, answer in answers.items()
        }
        host = Host(said)
        context = DriverContext(
            device="t1", shell=host, interface="Ethernet0", sudo=sudo, timeout_s=timeout_s, now=lambda: now
        )
        return SonicPort(context), host

    return opened
