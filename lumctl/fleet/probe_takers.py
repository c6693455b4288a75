"""The answers of a host whose accelerators a probe plug-in reads: its commands, and its lines of the kernel log."""

from dataclasses import dataclass, field

from lumctl.containment import MisbehavedError
from lumctl.fleet.contained_probe import ContainedProbe
from lumctl.fleet.parsers.kernel_log import kept
from lumctl.fleet.probe_api import CommandOutput, ProbeCommand
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict, failure, read_at
from lumctl.fleet.readings import ProbeStatus
from lumctl.fleet.takers import Kernel


@dataclass
class Outputs:
    """The newest outputs of a plug-in's commands on one host. ``read`` are those that the readings are made of."""

    by_name: dict[str, CommandOutput] = field(default_factory=dict)
    read: dict[str, CommandOutput] = field(default_factory=dict)


@dataclass(frozen=True)
class SideCommand:
    """A command of a plug-in other than the main one: its output is read together with the main one's."""

    command: ProbeCommand
    outputs: Outputs

    def take(self, answer: ProbeAnswer, _taken_at: float, _gathered: Gathered) -> Verdict:
        """Without a needed answer, an earlier answer must not be combined with a newer one of another command."""
        if answer.status != 0:
            if self.command.needed:
                self.outputs.by_name.pop(self.command.name, None)
            return failure(answer, otherwise=f"{self.command.run} prints nothing")
        self.outputs.by_name[self.command.name] = CommandOutput(answer.status, answer.text)
        return OK

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """The output that is known is the newest."""


@dataclass(frozen=True)
class MainCommand:
    """The main command of a plug-in: each answer is read, with the newest of its other commands."""

    contained: ContainedProbe
    outputs: Outputs

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """What cannot be read whole leaves no accelerator that an earlier answer listed."""
        *others, main = self.contained.probe.commands
        gathered.gpus, gathered.lost_gpus = (), ()
        self.outputs.by_name[main.name] = CommandOutput(answer.status, answer.text)
        missing = [other.run for other in others if other.needed and other.name not in self.outputs.by_name]
        if missing:
            return ProbeStatus.FAILED, f"{missing[0]} brought no answer, without which nothing can be read"
        try:
            report = self.contained.read(self.outputs.by_name, taken_at)
        except MisbehavedError as error:
            return ProbeStatus.FAILED, error.message
        self.outputs.read = dict(self.outputs.by_name)
        if answer.status != 0 and not report.accelerators and not report.lost:
            return failure(answer, otherwise=report.problem)
        gathered.gpus, gathered.lost_gpus = report.accelerators, report.lost
        if answer.status != 0:
            return failure(answer, otherwise=report.problem)
        return (ProbeStatus.FAILED, report.problem) if report.problem else OK

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """The same answer is read again only where that of another command has changed."""
        if self.outputs.read == self.outputs.by_name:
            gathered.gpus = read_at(gathered.gpus, taken_at)
            return
        main = self.outputs.by_name[self.contained.probe.commands[-1].name]
        self.take(ProbeAnswer(main.status, main.text), taken_at, gathered)


@dataclass(frozen=True)
class PluginKernel:
    """``dmesg`` of such a host: what lumctl reads of any kernel log, and the plug-in's own lines."""

    contained: ContainedProbe
    kernel: Kernel = field(default_factory=Kernel)

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """As of :class:`Kernel`: a whole answer replaces what was known."""
        before = gathered.accelerator_events if answer.appended or answer.status != 0 else ()
        found = self.contained.events(answer.text, booted_at=gathered.booted_at)
        gathered.accelerator_events = kept(before, found, lambda event: (event.pci, event.minor, event.kind))
        return self.kernel.take(answer, taken_at, gathered)

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """See the protocol."""
        self.kernel.again(taken_at, gathered)


@dataclass(frozen=True)
class Unusable:
    """Replaces a plug-in that cannot be used: whatever the host returns, its accelerators are unknown."""

    why: str

    def take(self, _answer: ProbeAnswer, _taken_at: float, gathered: Gathered) -> Verdict:
        """See the protocol."""
        gathered.gpus, gathered.lost_gpus = (), ()
        return ProbeStatus.FAILED, self.why

    def again(self, _taken_at: float, _gathered: Gathered) -> None:
        """See the protocol."""
