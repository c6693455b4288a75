"""Capturing hosts into a folder: what their tools print, asked once, each host over its one connection."""

import os
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult, HostShell
from lumctl.errors import RefusedError, UsageError
from lumctl.files import make_private
from lumctl.fleet.bundle.capture import (
    ABOUT_CAPTURE,
    ABOUT_HOST,
    CAPTURE_SCHEMA,
    HOST_SCHEMA,
    TABLES,
    CapturedProbe,
    CaptureManifest,
    HostManifest,
    file_of,
    write_manifest,
)
from lumctl.fleet.exporters.client import PageClient
from lumctl.fleet.exporters.combination import SHELL
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.inventory.model import NVIDIA_SMI
from lumctl.workers import Workers

_ALMOST = 0.9
"""The share of its deadline after which a command without an outcome is taken to have run out of time."""


@dataclass(frozen=True, slots=True)
class HostCapture:
    """One captured host: its manifest and its files by name."""

    manifest: HostManifest
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time of day, and one that never jumps."""

    now: Callable[[], float]
    monotonic: Callable[[], float]


def prepare(folder: Path) -> None:
    """Have an empty folder that only its owner may enter.

    Raises:
        RefusedError: there is something in it.
        UsageError: it cannot be had.
    """
    try:
        make_private(folder)
        if any(folder.iterdir()):
            raise RefusedError(f"{folder} is not empty; nothing was captured", hint="name another folder with --out")
        folder.chmod(0o700)
    except OSError as error:
        raise UsageError(f"cannot use {folder} for a capture: {error.strerror}") from error


def capture(
    fleet: Fleet,
    probes: Mapping[str, tuple[Probe, ...]],
    folder: Path,
    about: CaptureManifest,
    *,
    accelerator_probes: Mapping[str, str] = MappingProxyType({}),
    now: Callable[[], float],
    narrate: Callable[[str], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> list[HostCapture]:
    """Capture hosts at the same time, into a folder made by :func:`prepare`; each appears there complete or not at all.

    ``probes`` are those of each host to capture, and ``accelerator_probes`` those that read its accelerators, if not
    nvidia-smi. The manifest of the whole is written last: it shows that the capture is complete.

    Raises:
        UsageError: a host is not known, or the folder cannot be written.
    """
    # A light question first: it connects, tells a host that is not reached from one that does not answer, and brings
    # the time of its boot, which the stamps of its kernel log count from.
    first = fleet.collect(hosts=tuple(probes), probes=["net"])
    workers = Workers("capture")
    at_the_end, abandoned = threading.Lock(), threading.Event()

    def one(host: str) -> HostCapture:
        asked: list[tuple[Probe, HostShell]] = [(probe, _PageShell(client)) for probe, client in fleet.pages(host)]
        if SHELL not in first.hosts[host].probes:
            asked = [*((probe, fleet.shell(host)) for probe in probes[host]), *asked]
        captured = _ask_all(asked, first.hosts[host], about, Clocks(now, monotonic))
        manifest = replace(captured.manifest, accelerator_probe=accelerator_probes.get(host, NVIDIA_SMI))
        captured = replace(captured, manifest=manifest)
        with at_the_end:
            # After a timeout the sessions are closed; a host's complaint about that is not its state.
            if not abandoned.is_set():
                _write_host(folder, captured)
                narrate(f"{host}: {_told(captured)}")
        return captured

    try:
        started = [workers.submit(lambda host=host: one(host)) for host in probes]  # type: ignore[misc]
        captured = [each.result() for each in started]
    except BaseException:
        abandoned.set()
        raise
    finally:
        workers.close()
    try:
        _write(folder / ABOUT_CAPTURE, write_manifest(CAPTURE_SCHEMA, about))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return captured


def _ask_all(
    asking: Collection[tuple[Probe, HostShell]], first: HostSnapshot, about: CaptureManifest, clocks: Clocks
) -> HostCapture:
    asked: list[CapturedProbe] = []
    files: dict[str, str] = {}
    hung: dict[str, str] = {}
    for probe, shell in asking if first.reachable else ():
        if probe.lane in hung:
            # A second copy behind one that hangs would only hang as well.
            skipped = f"not asked, because {hung[probe.lane]} did not end"
            asked.append(CapturedProbe(probe.name, ProbeStatus.TIMED_OUT, clocks.now(), 0.0, detail=skipped))
            continue
        outcome, text = _ask(shell, probe, first.booted_at, clocks)
        asked.append(outcome)
        if outcome.file is not None:
            files[outcome.file] = text
        if outcome.status is ProbeStatus.TIMED_OUT and probe.lane:
            hung[probe.lane] = probe.name
    manifest = HostManifest(
        host=first.host,
        taken_at=about.taken_at,
        reachable=first.reachable,
        error=first.error,
        host_key_problem=first.host_key_problem,
        boot_id=first.boot_id,
        booted_at=first.booted_at,
        lumctl=about.lumctl,
        probes=tuple(asked),
    )
    return HostCapture(manifest, files)


@dataclass(frozen=True, slots=True)
class _PageShell:
    """What fetches the page of one exporter, asked in the manner of a shell."""

    client: PageClient

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        del command
        return CommandResult(0, self.client.fetch(timeout_s), "")


def _ask(shell: HostShell, probe: Probe, booted_at: float | None, clocks: Clocks) -> tuple[CapturedProbe, str]:
    """Read one probe, and let its own parser judge the answer."""
    taken_at, started = clocks.now(), clocks.monotonic()
    try:
        result = shell.run(command_of(probe), timeout_s=probe.deadline_s)
    except DeviceError as error:
        seconds = clocks.monotonic() - started
        late = isinstance(error, OutcomeUnknownError | DeviceUnreachableError) and seconds > _ALMOST * probe.deadline_s
        status = ProbeStatus.TIMED_OUT if late else ProbeStatus.FAILED
        detail = f"no answer within {probe.deadline_s:g} s" if late else error.message
        return CapturedProbe(probe.name, status, taken_at, seconds, detail=detail), ""
    seconds = clocks.monotonic() - started
    text = result.stdout + result.stderr
    status, detail = probe.take(ProbeAnswer(result.exit_status, text), taken_at, Gathered(booted_at=booted_at))
    worth_keeping = bool(text.strip()) and status is not ProbeStatus.ABSENT
    file = (probe.file or file_of(probe.name)) if worth_keeping else None
    kept = as_table(text) if probe.name in TABLES else text
    return CapturedProbe(probe.name, status, taken_at, seconds, result.exit_status, file, detail), kept


def command_of(probe: Probe) -> str:
    """The command line that prints what a probe's row of the host's loop prints; of a log, all of it."""
    kind, _, rest = probe.command.partition(" ")
    match kind:
        case "files":
            return f"grep -sH . {rest}"
        case "grow":
            return shlex.join(shlex.split(rest)[1:])
        case _:
            return rest


def as_table(text: str) -> str:
    """``PATH:VALUE`` as path, tab and value, which any table reader takes."""
    return "".join(
        f"{line.replace(':', chr(9), 1) if line.startswith('/sys/') else line}\n" for line in text.splitlines()
    )


def _write_host(folder: Path, captured: HostCapture) -> None:
    unfinished = folder / f".{captured.manifest.host}.unfinished"
    try:
        unfinished.mkdir(mode=0o700)
        for name, text in captured.files.items():
            _write(unfinished / name, text)
        _write(unfinished / ABOUT_HOST, write_manifest(HOST_SCHEMA, captured.manifest))
        unfinished.rename(folder / captured.manifest.host)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise _unwritable(folder, error) from error


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write the capture into {folder}: {error.strerror}")


def _told(captured: HostCapture) -> str:
    manifest = captured.manifest
    if not manifest.reachable:
        return f"not reached: {manifest.error or 'no session'}"
    problems = problems_of(manifest)
    told = f"{len(captured.files)} file{'' if len(captured.files) == 1 else 's'}"
    return f"{told}; {'; '.join(problems)}" if problems else told


def problems_of(manifest: HostManifest) -> list[str]:
    """The probes without a result, and why; tools that a host does not have are left out."""
    fine = {ProbeStatus.OK, ProbeStatus.ABSENT}
    return [f"{asked.probe} {asked.status}: {asked.detail}" for asked in manifest.probes if asked.status not in fine]
