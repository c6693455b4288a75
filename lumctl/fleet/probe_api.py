"""What a probe plug-in is made of: commands, a parser, kernel lines, rules as data, and fixtures. See lumctl-probe(7).

A probe reads the accelerators of a host with one vendor's tool. It is a class behind an entry point of the group
``lumctl.probes``. It does no I/O: lumctl runs the commands, over the connection that it has, and passes on what they
print.
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

    ``file`` is the name of its output in a capture. ``every_s`` and ``deadline_s`` are seconds. Without the answer of
    a ``needed`` command nothing is known; of another command the last good answer is used. ``sudo``: it needs root if
    the inventory says so.
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
    """What a command printed, its error output included, and its exit status."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kind of kernel line. ``pattern`` is an expression that ``grep -E`` and Python read alike; no single quotes.

    The first pattern that matches a line decides. The accelerator is the one at the line's first PCI address.
    """

    kind: str
    pattern: str


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The parsed outputs. ``problem`` describes what was cut or not understood; an absence then proves nothing.

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
    ``values`` are the values of :attr:`GpuReading.vendor_values` with their units; only these may occur there, and
    rules may look at them. ``minor_pattern`` finds, in its first group, the minor number in a kernel line that names
    the accelerator by it instead of by its address. ``rules`` and ``fixtures`` are beside the module.
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
        """Read what the commands printed, by their names.

        All needed commands are there. A state that must be known and is missing or damaged goes into
        :attr:`GpuReading.unread`, so that it does not pass for health. ``taken_at`` is for the readings.
        """
        raise NotImplementedError
