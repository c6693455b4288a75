"""The output of a host's tools, read once: each probe's command, its outcome, and its text."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult, HostShell
from lumctl.fleet.exporters.combination import SHELL
from lumctl.fleet.exporters.reader import PageClient
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import HostSnapshot, ProbeStatus

FIRST_PROBE = "net"
"""A cheap first request: it connects, shows whether the host answers, and returns its boot time."""
_ALMOST = 0.9
"""The share of its deadline after which a command without an outcome counts as out of time."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock, and a clock that never jumps."""

    now: Callable[[], float]
    monotonic: Callable[[], float]


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The result of one probe: ``exit_status`` is ``None`` if the command did not end; ``text`` is all its output."""

    probe: Probe
    command: str
    status: ProbeStatus
    taken_at: float
    seconds: float
    exit_status: int | None = None
    detail: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _PageShell:
    """Fetches the page of one exporter, with the interface of a shell."""

    client: PageClient

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        del command
        return CommandResult(0, self.client.fetch(timeout_s), "")


def host_answers(fleet: Fleet, first: HostSnapshot, probes: Iterable[Probe], clocks: Clocks) -> Iterator[HostAnswer]:
    """Run a host's probes and read its exporters, each with its deadline; nothing if it is unreachable.

    ``first`` is the result of :data:`FIRST_PROBE`.
    """
    asked: list[tuple[Probe, HostShell]] = [(probe, _PageShell(client)) for probe, client in fleet.pages(first.host)]
    if SHELL not in first.probes:
        asked = [*((probe, fleet.shell(first.host)) for probe in probes), *asked]
    hung: dict[str, str] = {}
    for probe, shell in asked if first.reachable else ():
        if probe.lane in hung:
            # A second copy behind one that hangs would only hang as well.
            skipped = f"not run, because {hung[probe.lane]} did not end"
            yield HostAnswer(probe, command_of(probe), ProbeStatus.TIMED_OUT, clocks.now(), 0.0, detail=skipped)
            continue
        answer = _ask(shell, probe, first.booted_at, clocks)
        yield answer
        if answer.status is ProbeStatus.TIMED_OUT and probe.lane:
            hung[probe.lane] = probe.name


def _ask(shell: HostShell, probe: Probe, booted_at: float | None, clocks: Clocks) -> HostAnswer:
    """Read one probe, and have its own parser judge the answer."""
    command, taken_at, started = command_of(probe), clocks.now(), clocks.monotonic()
    try:
        result = shell.run(command, timeout_s=probe.deadline_s)
    except DeviceError as error:
        seconds = clocks.monotonic() - started
        late = isinstance(error, OutcomeUnknownError | DeviceUnreachableError) and seconds > _ALMOST * probe.deadline_s
        status = ProbeStatus.TIMED_OUT if late else ProbeStatus.FAILED
        detail = f"no answer within {probe.deadline_s:g} s" if late else error.message
        return HostAnswer(probe, command, status, taken_at, seconds, detail=detail)
    seconds = clocks.monotonic() - started
    # The host's loop merges both as well, and parsers look for complaints in the text.
    text = result.stdout + result.stderr
    status, detail = probe.take(ProbeAnswer(result.exit_status, text), taken_at, Gathered(booted_at=booted_at))
    return HostAnswer(probe, command, status, taken_at, seconds, result.exit_status, detail, text)


def command_of(probe: Probe) -> str:
    """The command line whose output equals that of a probe's row in the host's loop; for a log, the whole log."""
    kind, _, rest = probe.command.partition(" ")
    match kind:
        case "files":
            return f"grep -sH . {rest}"
        case "grow":
            return shlex.join(shlex.split(rest)[1:])
        case _:
            return rest
