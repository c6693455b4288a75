"""Capture hosts into a folder: each tool is run once, over the host's single connection, and its output is saved."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

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
from lumctl.fleet.bundle.host_answers import FIRST_PROBE, Clocks, HostAnswer, host_answers
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.inventory.model import NVIDIA_SMI
from lumctl.workers import Workers


@dataclass(frozen=True, slots=True)
class HostCapture:
    """One captured host: its manifest and its files by name."""

    manifest: HostManifest
    files: Mapping[str, str]


def prepare(folder: Path) -> None:
    """Make sure that a folder exists, is empty, and can be entered only by its owner.

    Raises:
        RefusedError: the folder is not empty.
        UsageError: the folder cannot be made or used.
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
    """Capture hosts in parallel, into a folder made by :func:`prepare`. Each appears there complete or not at all.

    ``probes`` are the probes of each host to capture. ``accelerator_probes`` has, by host, the probe that reads its
    accelerators if that is not nvidia-smi. The manifest of the whole capture is written last: it shows that the capture
    is complete.

    Raises:
        UsageError: a host is unknown, or the folder cannot be written.
    """
    first = fleet.collect(hosts=tuple(probes), probes=[FIRST_PROBE])
    workers = Workers("capture")
    at_the_end, abandoned = threading.Lock(), threading.Event()

    def one(host: str) -> HostCapture:
        answers = host_answers(fleet, first.hosts[host], probes[host], Clocks(now, monotonic))
        captured = _captured(answers, first.hosts[host], about)
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


def _captured(answers: Iterable[HostAnswer], first: HostSnapshot, about: CaptureManifest) -> HostCapture:
    asked: list[CapturedProbe] = []
    files: dict[str, str] = {}
    for answer in answers:
        probe = answer.probe
        worth_keeping = bool(answer.text.strip()) and answer.status is not ProbeStatus.ABSENT
        file = (probe.file or file_of(probe.name)) if worth_keeping else None
        if file is not None:
            files[file] = as_table(answer.text) if probe.name in TABLES else answer.text
        asked.append(
            CapturedProbe(
                probe.name, answer.status, answer.taken_at, answer.seconds, answer.exit_status, file, answer.detail
            )
        )
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


def as_table(text: str) -> str:
    """Lines of ``PATH:VALUE`` as path, tab and value, which any table reader accepts."""
    return "".join(
        f"{line.replace(':', chr(9), 1) if line.startswith('/sys/') else line}\n" for line in text.splitlines()
    )


def _write_host(folder: Path, captured: HostCapture) -> None:
    # Hidden until it is complete: the reader of captures skips hidden names.
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
    # O_EXCL also refuses a link that another user put there.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    # newline="": the outputs keep their own ends of lines.
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
    """The probes without a result, and why. Tools that the host does not have are omitted."""
    fine = {ProbeStatus.OK, ProbeStatus.ABSENT}
    return [f"{asked.probe} {asked.status}: {asked.detail}" for asked in manifest.probes if asked.status not in fine]
