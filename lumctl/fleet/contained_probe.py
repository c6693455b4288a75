"""An isolated probe plug-in: its faults affect only its own host's accelerators, and name the plug-in.

Its parser runs in the thread that receives for all hosts. So each call has a short time limit, and after a call that
exceeds it the plug-in is not called for a while. The classes at the end read the answers of one host: to the plug-in's
commands, and the kernel log with the lines that the plug-in declares.
"""

import math
import re
import time
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from threading import Lock
from typing import Any, Union, get_args, get_origin, get_type_hints

from lumctl.containment import Culprit, LateError, MisbehavedError, contained, contained_here
from lumctl.errors import LumctlError
from lumctl.fleet.parsers.fields import find_pci, lines_of, whole_pci
from lumctl.fleet.parsers.kernel_log import LONGEST_LINE, kept, line_time
from lumctl.fleet.probe_api import AcceleratorProbe, CommandOutput, ProbeCommand, ProbeReport
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict, failure, read_at
from lumctl.fleet.probe_plugins import WHAT, load, offer
from lumctl.fleet.readings import AcceleratorEvent, GpuReading, ProbeStatus
from lumctl.fleet.takers import Kernel
from lumctl.printable import one_line

_MOST_ACCELERATORS = 1024
_MOST_SHOWN = 80
Fits = Callable[[Any], bool]


def complaint(report: Any, values: Collection[str]) -> str | None:
    """The fault in the report of a probe that declares these values; ``None`` if it is correct."""
    return next(_complaints(report, values), None)


def _complaints(report: Any, values: Collection[str]) -> Iterator[str]:
    if not isinstance(report, ProbeReport):
        yield f"returned {type(report).__name__}, which is not a ProbeReport"
        return
    of_report: Any = report
    for name, fits in (("accelerators", tuple), ("lost", tuple), ("problem", str)):
        if not isinstance(getattr(of_report, name), fits):
            yield f"returned {name} of type {type(getattr(of_report, name)).__name__}, expected {fits.__name__}"
            return
    if len(report.accelerators) > _MOST_ACCELERATORS:
        yield f"returned {len(report.accelerators)} accelerators of one host"
    for pci in report.lost:
        if not isinstance(pci, str) or whole_pci(pci) is None:
            yield f"returned {_shown(pci)} in lost, which is not a PCI address"
    known: set[str | None] = set()
    for reading in report.accelerators:
        yield from _of_reading(reading, values)
        address = whole_pci(reading.pci)
        if address in known:
            yield f"returned {address} twice"
        known.add(address)


def _of_reading(reading: Any, values: Collection[str]) -> Iterator[str]:
    if not isinstance(reading, GpuReading):
        yield f"returned {type(reading).__name__}, which is not a GpuReading"
        return
    for name, fits in _fits().items():
        if not fits(getattr(reading, name)):
            yield f"returned {name} {_shown(getattr(reading, name))} of {_shown(reading.pci)}"
    if whole_pci(reading.pci) is None:
        yield f"returned {_shown(reading.pci)}, which is not a PCI address"
    for name in reading.vendor_values:
        if name not in values:
            yield f"returned the value {_shown(name)}, which it does not declare"


def _shown(value: object) -> str:
    return one_line(repr(value), _MOST_SHOWN)


@cache
def _fits() -> Mapping[str, Fits]:
    """For each field of a reading, a check whether a value has its type."""
    hints = get_type_hints(GpuReading)
    return {each.name: _fit(hints[each.name]) for each in fields(GpuReading)}


def _fit(hint: Any) -> Fits:
    kind, of = get_origin(hint), get_args(hint)
    if kind in {Union, types.UnionType}:
        some = [_fit(each) for each in of]
        return lambda value: any(fits(value) for fits in some)
    if kind is tuple:
        return _tuple_of(of)
    if kind is frozenset:
        item = _fit(of[0])
        return lambda value: isinstance(value, frozenset) and all(map(item, value))
    if kind is not None:  # a mapping: a reading has no other kind of field
        key, item = _fit(of[0]), _fit(of[1])
        return lambda value: isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
    if hint is float:
        # A flag is an int to Python, and no measured value. NaN exceeds no limit, so it would pass for healthy.
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return lambda value: isinstance(value, hint) and (hint is not int or not isinstance(value, bool))


def _tuple_of(of: tuple[Any, ...]) -> Fits:
    parts = [_fit(each) for each in of if each is not Ellipsis]
    if Ellipsis in of:
        return lambda value: isinstance(value, tuple) and all(map(parts[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(parts)
        and all(fits(part) for fits, part in zip(parts, value, strict=True))
    )


READ_WITHIN_S = 1.0
_RESTS_S = 60.0
"""How long a plug-in is not called after a late call."""
_MOST_CHARACTERS = 500


class ContainedProbe:
    """One probe plug-in, shared by all hosts that it reads. Several threads may use it."""

    def __init__(
        self,
        probe: type[AcceleratorProbe],
        culprit: Culprit,
        *,
        within_s: float = READ_WITHIN_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.probe = probe
        self.culprit = culprit
        self._within_s = within_s
        self._monotonic = monotonic
        self._lock = Lock()
        self._late: LateError | None = None
        self._rests_until = 0.0
        self._lines = tuple((line.kind, re.compile(line.pattern)) for line in probe.kernel_lines)
        self._minor = re.compile(probe.minor_pattern) if probe.minor_pattern else None

    @property
    def kernel_pattern(self) -> str:
        """The expression that selects its kernel lines on the host (``grep -E``); empty if it reads none."""
        return "|".join(line.pattern for line in self.probe.kernel_lines)

    def read(self, outputs: Mapping[str, CommandOutput], taken_at: float) -> ProbeReport:
        """The checked report of the outputs: each reading has the right types and names this probe as its source.

        Raises:
            MisbehavedError: the plug-in raised, is late, or did not return a valid report.
        """
        report: ProbeReport = self._call("read", lambda: self.probe.read(dict(outputs), taken_at))
        wrong = complaint(report, self.probe.values)
        if wrong:
            raise MisbehavedError(self.culprit, "read", wrong)
        readings = tuple(
            replace(each, pci=whole_pci(each.pci) or each.pci, taken_at=taken_at, source=self.probe.name)
            for each in report.accelerators
        )
        return replace(report, accelerators=readings, problem=one_line(report.problem, _MOST_CHARACTERS))

    def events(self, text: str, *, booted_at: float | None) -> tuple[AcceleratorEvent, ...]:
        """The plug-in's events in a kernel log, in order."""
        found: list[AcceleratorEvent] = []
        for whole in lines_of(text) if self._lines else ():
            line = whole[:LONGEST_LINE]
            kind = next((kind for kind, pattern in self._lines if pattern.search(line)), None)
            if kind is not None:
                stamp, at = line_time(line, booted_at)
                minor = self._minor.search(line) if self._minor is not None else None
                number = int(minor[1]) if minor is not None and minor[1].isascii() and minor[1].isdigit() else None
                message = line.partition(stamp)[2].lstrip("] ") if stamp else line
                found.append(AcceleratorEvent(at, find_pci(message), number, kind, message.strip(), stamp))
        return tuple(found)

    def _call(self, name: str, call: Callable[[], Any]) -> Any:
        if self.culprit.is_ours:
            return contained_here(self.culprit, name, call)
        with self._lock:
            late, rests = self._late, self._monotonic() < self._rests_until
        # Each further call would occupy another thread and delay the answers of all hosts by its time limit.
        if late is not None and (rests or not late.late.done()):
            raise MisbehavedError(self.culprit, name, f"was late ({self._within_s:g} s), and is not called for now")
        try:
            return contained(self.culprit, name, call, self._within_s)
        except LateError as error:
            with self._lock:
                self._late, self._rests_until = error, self._monotonic() + _RESTS_S
            raise
        except MisbehavedError:
            raise
        except LumctlError as error:
            # A domain error is a mistake too: `read` has nothing to refuse, and its callers expect only this error.
            raise MisbehavedError(self.culprit, name, f"raised {error.message}") from error


def contained_probe(name: str) -> ContainedProbe:
    """The isolated probe of that name; all hosts share one.

    Raises:
        UsageError: the probe is not installed or cannot be used.
    """
    return _contained(load(name))  # type: ignore[arg-type] # mypy takes the class for an instance


@cache
def _contained(probe: type[AcceleratorProbe]) -> ContainedProbe:
    return ContainedProbe(probe, offer(probe.name).culprit(WHAT))


@dataclass
class Outputs:
    """The newest outputs of a plug-in's commands on one host. ``read`` are the outputs behind the present readings."""

    by_name: dict[str, CommandOutput] = field(default_factory=dict)
    read: dict[str, CommandOutput] = field(default_factory=dict)


@dataclass(frozen=True)
class SideCommand:
    """A command of a plug-in other than the main one: its output is read together with the main one's."""

    command: ProbeCommand
    outputs: Outputs

    def take(self, answer: ProbeAnswer, _taken_at: float, _gathered: Gathered) -> Verdict:
        """Store the output. If a needed command fails, its old output is dropped; it must not mix with new answers."""
        if answer.status != 0:
            if self.command.needed:
                self.outputs.by_name.pop(self.command.name, None)
            return failure(answer, otherwise=f"{self.command.run} prints nothing")
        self.outputs.by_name[self.command.name] = CommandOutput(answer.status, answer.text)
        return OK

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """Do nothing: the known output is the newest."""


@dataclass(frozen=True)
class MainCommand:
    """The main command of a plug-in: each answer is read together with the newest answers of the other commands."""

    contained: ContainedProbe
    outputs: Outputs

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read an answer. The accelerators of earlier answers are dropped, even if this one cannot be read."""
        *others, main = self.contained.probe.commands
        gathered.gpus, gathered.lost_gpus = (), ()
        self.outputs.by_name[main.name] = CommandOutput(answer.status, answer.text)
        missing = [other.run for other in others if other.needed and other.name not in self.outputs.by_name]
        if missing:
            return ProbeStatus.FAILED, f"{missing[0]} returned nothing, and without it nothing can be read"
        try:
            report = self.contained.read(self.outputs.by_name, taken_at)
        except MisbehavedError as error:
            return ProbeStatus.FAILED, error.message
        self.outputs.read = dict(self.outputs.by_name)
        # A tool that fails may still name lost accelerators, or list the others, and these count.
        if answer.status != 0 and not report.accelerators and not report.lost:
            return failure(answer, otherwise=report.problem)
        gathered.gpus, gathered.lost_gpus = report.accelerators, report.lost
        if answer.status != 0:
            return failure(answer, otherwise=report.problem)
        return (ProbeStatus.FAILED, report.problem) if report.problem else OK

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """Read the same answer again if the answer of another command has changed; otherwise only renew the time."""
        if self.outputs.read == self.outputs.by_name:
            gathered.gpus = read_at(gathered.gpus, taken_at)
            return
        main = self.outputs.by_name[self.contained.probe.commands[-1].name]
        self.take(ProbeAnswer(main.status, main.text), taken_at, gathered)


@dataclass(frozen=True)
class PluginKernel:
    """``dmesg`` of a host with a plug-in: the events of any kernel log, and the plug-in's own."""

    contained: ContainedProbe
    kernel: Kernel = field(default_factory=Kernel)

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read the log as :class:`Kernel` does: a whole answer replaces earlier events."""
        before = gathered.accelerator_events if answer.appended or answer.status != 0 else ()
        found = self.contained.events(answer.text, booted_at=gathered.booted_at)
        gathered.accelerator_events = kept(before, found, lambda event: (event.pci, event.minor, event.kind))
        return self.kernel.take(answer, taken_at, gathered)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        self.kernel.again(taken_at, gathered)


@dataclass(frozen=True)
class Unusable:
    """Replaces a plug-in that cannot be used: the accelerators are unknown, whatever the host answers."""

    why: str

    def take(self, _answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        gathered.gpus, gathered.lost_gpus = (), ()
        return ProbeStatus.FAILED, self.why

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """See the protocol."""
