"""Installed probe plug-ins, found by their entry points. Listing them imports none; loading one imports only it."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lumctl.api_versions import Api, Misfit
from lumctl.errors import UsageError
from lumctl.fleet.probe_api import AcceleratorProbe, KernelLine, ProbeCommand
from lumctl.fleet.readings import GpuReading
from lumctl.inventory.model import NVIDIA_SMI
from lumctl.offers import PROBES, Offer, offered, the_offer, usable

GROUP = PROBES
WHAT = "probe"
API = Api("probe API", 1, "lumctl-probe(7)")
_UPGRADE = "upgrade {package} or lumctl"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VALUE = re.compile(r"[a-z][a-z0-9_]*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# The command becomes a line of the program of the host's shell, where each of these has a meaning.
_SHELL = re.compile(r"[|&;<>()$`\\\"'*?\[\]#~\n]")
_ONLY_PYTHON = re.compile(r"['\n]|\(\?|\\[A-Za-z0-9]")
"""Syntax that an expression for ``grep -E`` within single quotes must not contain."""
_MOST_COMMANDS, _MOST_LINES = 8, 64
_SHELLS = frozenset({"sudo", "sh", "bash", "env"})
_MOST_S = 86_400.0


_under_test: dict[str, type[AcceleratorProbe]] = {}


@contextmanager
def under_test(probe: type[AcceleratorProbe]) -> Iterator[None]:
    """Within the block, use this class as the probe of its name, whatever is installed: for the probe test kit."""
    _under_test[probe.name] = probe
    try:
        yield
    finally:
        del _under_test[probe.name]


def installed() -> tuple[Offer, ...]:
    """Every probe that some installed package offers, by name, from package metadata alone."""
    if not _under_test:
        return offered(GROUP)
    others = [each for each in offered(GROUP) if each.name not in _under_test]
    return (*others, *map(offer, _under_test))


def offer(name: str) -> Offer:
    """The package that offers the probe of that name.

    Raises:
        UsageError: no package offers a probe of that name, or two packages do.
    """
    if (probe := _under_test.get(name)) is not None:
        return Offer(name, f"{probe.__module__}:{probe.__qualname__}", "package", "under test")
    return the_offer(GROUP, name, WHAT)


def load(name: str) -> type[AcceleratorProbe]:
    """Import the probe of that name and check that this program can use it.

    Raises:
        UsageError: no package or more than one offers that name, the import fails, or the class is not a valid probe.
    """
    return _under_test.get(name) or _loaded(name)


@cache
def _loaded(name: str) -> type[AcceleratorProbe]:
    def fitted(found: object) -> type | Misfit:
        if not isinstance(found, type):
            return Misfit("is not a class", _UPGRADE)
        fit = API.fitted(found)
        if isinstance(fit, Misfit):
            return fit
        wrong = complaint(fit, name)
        return Misfit(wrong, f"report it to the author of {{package}}, see {API.page}") if wrong else fit

    probe: type[AcceleratorProbe] = usable(GROUP, name, WHAT, fitted)
    return probe


def complaint(probe: type, name: str) -> str | None:
    """The fault in the declarations of a probe that is offered under this name; ``None`` if they are correct."""
    return next(_complaints(probe, name), None)


def _complaints(probe: Any, name: str) -> Iterator[str]:
    if not issubclass(probe, AcceleratorProbe):
        yield "is not a subclass of lumctl.fleet.probe_api.AcceleratorProbe"
        return
    declared: Any = probe
    if declared.name != name or not _NAME.fullmatch(name) or name == NVIDIA_SMI:
        yield f"calls itself {declared.name!r}, expected the name of its entry point, in lower case with hyphens"
    if probe.read is AcceleratorProbe.read:
        yield "does not implement read()"
    if not isinstance(declared.values, Mapping) or not all(
        isinstance(key, str) and _VALUE.fullmatch(key) and isinstance(unit, str)
        for key, unit in declared.values.items()
    ):
        yield "does not declare its values as a mapping from names such as bad_pages to units"
        return
    # Rules and screens use one name for both, so they could take different ones of the two.
    if clash := [value for value in declared.values if value in GpuReading.__slots__]:
        yield f"declares the value {clash[0]!r}, which is the name of a field of every reading"
    for kind, of, most in (("commands", ProbeCommand, _MOST_COMMANDS), ("kernel_lines", KernelLine, _MOST_LINES)):
        found = getattr(declared, kind)
        if not isinstance(found, tuple) or len(found) > most or not all(isinstance(each, of) for each in found):
            yield f"does not declare its {kind} as a tuple of at most {most} {of.__name__}"
            return
    yield from _of_commands(probe.commands)
    yield from _of_lines(probe.kernel_lines, declared.minor_pattern)


def _of_commands(commands: tuple[ProbeCommand, ...]) -> Iterator[str]:
    for command in commands:
        words = shlex.split(command.run) if not _SHELL.search(command.run) else []
        if not words or words[0].startswith(("-", "/")) or words[0] in _SHELLS:
            yield f"has command {command.run!r}, expected a tool and its arguments without shell syntax"
        if not _NAME.fullmatch(command.name) or not _FILE.fullmatch(command.file):
            yield f"has command {command.name!r} with file {command.file!r}, expected plain names"
        if not (0 <= command.every_s <= _MOST_S and 0 < command.deadline_s <= _MOST_S):
            yield f"has command {command.name!r} with every_s or deadline_s out of range"
    if not commands or not commands[-1].needed:
        yield "has no last command that is both required and the main one"
    if len({command.name for command in commands}) < len(commands) or len({c.file for c in commands}) < len(commands):
        yield "uses the name or the file of a command twice"


def _of_lines(lines: tuple[KernelLine, ...], minor_pattern: str) -> Iterator[str]:
    for line in lines:
        if _ONLY_PYTHON.search(line.pattern):
            yield f"has kernel line {line.kind!r} with a pattern that grep -E does not read as Python does"
        if not _NAME.fullmatch(line.kind):
            yield f"has a kernel line of kind {line.kind!r}, expected lower case with hyphens"
    try:
        compiled = [re.compile(line.pattern) for line in lines]
        minor = re.compile(minor_pattern)
    except re.error as error:
        yield f"has a pattern that does not compile: {error}"
        return
    # It would select every line of every host's kernel log.
    if any(pattern.search("") for pattern in compiled):
        yield "has a pattern of kernel lines that matches every line"
    if minor_pattern and not minor.groups:
        yield "has a minor_pattern without a group"


def file_of(probe: type[AcceleratorProbe], named: str) -> Path:
    """The path of a file or folder of a probe, which is next to the module of its class."""
    module = sys.modules[probe.__module__]
    return Path(module.__file__ or "").parent / named


def label_of(probe: type[AcceleratorProbe], command: ProbeCommand) -> str:
    """A command's name among all probes of a host: ``gpu`` for the main command, otherwise such as ``gpu:static``."""
    return "gpu" if command is probe.commands[-1] else f"gpu:{command.name}"


@cache
def _files() -> Mapping[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for each in installed():
        try:
            probe = load(each.name)
        except UsageError:
            continue  # Reported where the probe is used.
        for command in probe.commands:
            found.setdefault(command.file, (label_of(probe, command), each.name))
    return found


def probe_command(file: str) -> tuple[str, str] | None:
    """The command and the plug-in whose output a capture file contains, by the file's name; ``None`` if none fits."""
    return _files().get(file)
