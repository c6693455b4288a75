"""The parts of a probe plug-in: commands, a parser, kernel lines, rules as data, and fixtures. See lumctl-probe(7).

A probe reads the accelerators of a host with one vendor's tool. It is a class behind an entry point of the group
``lumctl.probes``. It does no I/O: lumctl runs the commands over its own connection and passes the output to the probe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lumctl.fleet.parsers.fields import whole_pci
from lumctl.fleet.readings import GpuReading

__all__ = [
    "AcceleratorProbe",
    "CommandOutput",
    "GpuReading",
    "KernelLine",
    "ProbeCommand",
    "ProbeReport",
    "pci_address",
]


@dataclass(frozen=True, slots=True)
class ProbeCommand:
    """A command that only reads, such as ``amd-smi metric --json``; no shell, pipe or redirection.

    ``file`` is the name of its output in a capture. ``every_s`` and ``deadline_s`` are seconds. If a ``needed`` command
    has no answer, nothing is read; for any other command the last good answer is used. ``sudo`` means that the command
    runs with sudo if the inventory says so.
    """

    name: str
    run: str
    file: str
    every_s: float = 10.0
    deadline_s: float = 5.0
    needed: bool = True
    sudo: bool = False


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The exit status of a command, and its output including error output."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kind of kernel line. ``pattern`` must mean the same to ``grep -E`` and Python, and hold no single quotes.

    The first pattern that matches a line decides. The accelerator is the one at the line's first PCI address.
    """

    kind: str
    pattern: str


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The parsed outputs. ``problem`` states what was cut or not understood: a missing accelerator then proves nothing.

    ``lost`` are PCI addresses that the tool itself names as lost.
    """

    accelerators: tuple[GpuReading, ...] = ()
    lost: tuple[str, ...] = ()
    problem: str = ""


def pci_address(text: str) -> str | None:
    """A text that is nothing but a PCI address, as ``dddd:bb:dd.f`` in lower case; ``None`` for every other text."""
    return whole_pci(text)


class AcceleratorProbe:
    """Base class of probes. A probe states its own ``api_version``, which is 1, and its name.

    The last of ``commands`` is the main one: each of its answers is read together with the newest of the others.
    ``values`` declares the names that may occur in :attr:`GpuReading.vendor_values`, with their units; rules may use
    them. ``minor_pattern`` is for kernel lines that name the accelerator by its minor number instead of its address:
    its first group is that number. ``rules`` and ``fixtures`` are a file and a folder next to the module.
    """

    api_version: ClassVar[int]
    name: ClassVar[str]
    proven: ClassVar[str] = "not stated"
    commands: ClassVar[tuple[ProbeCommand, ...]] = ()
    values: ClassVar[Mapping[str, str]] = {}
    kernel_lines: ClassVar[tuple[KernelLine, ...]] = ()
    minor_pattern: ClassVar[str] = ""
    rules: ClassVar[str] = "rules.yaml"
    fixtures: ClassVar[str] = "fixtures"

    @staticmethod
    def read(outputs: Mapping[str, CommandOutput], taken_at: float) -> ProbeReport:
        """Parse the outputs of the commands, given by the commands' names.

        The outputs of all needed commands are present. If a state that must be known is missing or damaged, put it into
        :attr:`GpuReading.unread`, so that it does not count as healthy. ``taken_at`` is the time of the readings.
        """
        raise NotImplementedError
