"""Read one host's folder of a capture into the snapshot that a live collection would have returned.

The probes' own parsers read the files, so a capture gives the same readings as the live host. A missing file means that
the probe was not run, and proves nothing. An unreadable file is reported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from lumctl.devices.formats.complaint import first_line
from lumctl.fleet.bundle import session as bundle_session
from lumctl.fleet.bundle.capture import FILES, TABLES, CapturedProbe, HostManifest, read_host_manifest
from lumctl.fleet.bundle.files import SESSION, CapturedFile, HostFolder
from lumctl.fleet.exporters import exporter_probes
from lumctl.fleet.exporters.combination import combined
from lumctl.fleet.exporters.probes import answered_probes
from lumctl.fleet.parsers.fields import find_pci
from lumctl.fleet.parsers.kernel_log import calendar_time, parse_kernel_log
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict, visible
from lumctl.fleet.probes import Probe, probes_for
from lumctl.fleet.readings import GpuReading, HostSnapshot, ProbeOutcome, ProbeStatus
from lumctl.inventory.exporters import EXPORTER_KINDS
from lumctl.inventory.model import NVIDIA_SMI

_HEAD = 80
"""How far into a line its time may begin."""
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_CALENDAR = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3}) {1,2}(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})", re.ASCII
)
_SMI_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,60})</timestamp>|^Timestamp\s+: (.{1,60})$", re.MULTILINE)
_APART_S = 86400.0


def log_time(text: str) -> float | None:
    """The newest time of a log, in seconds since the epoch; ``None`` if no line has one, or only a time since boot.

    A time that is a day or more after all others is ignored: the clock jumped or the line is damaged, and compared with
    that time all other events would look old.
    """
    times = sorted(_line_times(text.splitlines()), reverse=True)
    close = next((newer for newer, older in pairwise(times) if newer - older <= _APART_S), None)
    return close if close is not None else min(times, default=None)


def smi_time(text: str) -> float | None:
    """The time that nvidia-smi printed; the last one if there are several."""
    stated = [found[1] or found[2] for found in _SMI_TIMESTAMP.finditer(text)]
    times = [time for said in stated if (time := _time(said)) is not None]
    return times[-1] if times else None


def _line_times(lines: Iterable[str]) -> Iterator[float]:
    for line in lines:
        time = _time(line[:_HEAD])
        if time is not None:
            yield time


def _time(said: str) -> float | None:
    """A time without a zone counts as UTC, as everywhere in the program."""
    try:
        if found := _CALENDAR.search(said):
            return calendar_time(found)
        if found := _ISO.search(said):
            when = datetime.fromisoformat(found[0].replace(",", "."))
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return None


_NO_MODULE = re.compile(r"\s*(?:netlink error|Cannot get module EEPROM)", re.IGNORECASE)
"""How ethtool's output begins if there is no module. ethtool then ended with an error, which a file does not show."""
_DRIVER_SPEAKS = re.compile(
    r"NVIDIA-SMI (?:has failed|couldn't)|Failed to initialize NVML|Unable to (?:determine|(?:load|find) .*driver)",
    re.IGNORECASE,
)
"""nvidia-smi's own complaints: a capture judges them like the output of a live host."""
_SMI_HEAD = 4096
"""How far into nvidia-smi's answer its time may begin."""
_SYSLOG = re.compile(r"^[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} \S{1,255} kernel: ", re.MULTILINE)
"""A line as journalctl -k and /var/log/kern.log write it: without the year, so its time is unknown."""
_NAMED_GPU = re.compile(r"NVRM: GPU at PCI:(\S{7,16})|\bnvidia ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): ")
_ATTACHED = re.compile(r"<attached_gpus>\s*([0-9]{1,4})\s*</attached_gpus>")
_OF_INTERFACE = re.compile(r"[^\s:/]+/(?:operstate|carrier_changes|speed|statistics/\w+|carrier_\w+_count)")


@dataclass(frozen=True, slots=True)
class Unread:
    """A file of a capture that could not be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class CapturedHost:
    """One host of a capture.

    ``at`` is when it was captured, from its manifest if there is one, otherwise from its files. ``named_gpus`` are the
    PCI addresses that its kernel log names. ``attached`` is the number of GPUs that nvidia-smi counts, set only if it
    lists fewer: then it was run for single GPUs, and an unlisted GPU is not lost. ``probe`` is the probe that read the
    host's accelerators.
    """

    id: str
    at: float
    snapshot: HostSnapshot
    named_gpus: tuple[str, ...] = ()
    attached: int | None = None
    unread: tuple[Unread, ...] = ()
    probe: str = NVIDIA_SMI


@dataclass(frozen=True, slots=True)
class _Part:
    """The outputs of one probe, which may be in several files, and their names."""

    texts: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def text(self) -> str:
        """All outputs joined, because logs and tables continue from file to file."""
        return "\n".join(self.texts)


def read_host(folder: HostFolder, probe: str | None = None) -> CapturedHost:
    """Read everything in a folder. It never raises an error, whatever the content.

    ``probe`` is the inventory's probe for accelerators. If it is ``None``, the manifest or the files' names decide.
    """
    unread = [Unread(name, reason) for name, reason in folder.refused]
    manifest = read_host_manifest(folder.manifest, folder.id) if folder.manifest is not None else None
    if folder.manifest is not None and manifest is None:
        unread.append(Unread("manifest.json", "is not the manifest of a captured host"))
    accelerators = probe or (manifest.accelerator_probe if manifest else _plugin_of(folder.files))
    foreign = [file.name for file in folder.files if _is_foreign(file, accelerators)]
    unread += [Unread(name, f"belongs to another probe than {accelerators}, which reads this host") for name in foreign]
    parts = _parts(file for file in folder.files if file.name not in foreign)
    at = manifest.taken_at if manifest else _time_of(parts, folder.files)
    gathered = Gathered(booted_at=manifest.booted_at if manifest else None)
    asked = {one.probe: one for one in manifest.probes} if manifest else {}
    outcomes: dict[str, ProbeOutcome] = {}
    for each in _probes(parts, asked, accelerators):
        part = parts.get(each.name)
        outcome = _outcome(each, part, asked.get(each.name), at, gathered)
        if outcome is not None and part is not None and not _as_live(outcome, part, manifest):
            unread.append(Unread(", ".join(part.files), first_line(outcome.detail) or "contains nothing of its kind"))
            outcome = None
        if outcome is not None:
            outcomes[each.name] = outcome
    _take_counters_of_ports(parts, at, gathered)
    pages = Gathered()
    page_outcomes = _read_pages(parts, asked, manifest, at, pages, unread)
    if SESSION in parts:
        unread.append(Unread(", ".join(parts[SESSION].files), "contains no command whose output lumctl can parse"))
    if not outcomes and not page_outcomes and not unread and (manifest is None or manifest.reachable):
        unread.append(Unread(folder.id, "contains no file that lumctl can parse"))
    attached = _attached(parts, gathered)
    if attached is not None:
        # Without an outcome of the probe, a GPU that is not listed is not taken for lost.
        outcomes.pop("gpu", None)
    snapshot = _snapshot(folder.id, at, manifest, outcomes, gathered)
    if page_outcomes:
        told = {**page_outcomes, **answered_probes(page_outcomes, pages, (), at)}
        snapshot = combined(snapshot, _snapshot(folder.id, at, manifest, told, pages))
    return CapturedHost(
        id=folder.id,
        at=at,
        snapshot=snapshot,
        named_gpus=_named_gpus(parts),
        attached=attached,
        unread=tuple(unread),
        probe=accelerators,
    )


def _read_pages(
    parts: Mapping[str, _Part],
    asked: Mapping[str, CapturedProbe],
    manifest: HostManifest | None,
    at: float,
    pages: Gathered,
    unread: list[Unread],
) -> dict[str, ProbeOutcome]:
    """The outcomes of the exporters' pages. Their readings are added to ``pages``."""
    kinds = {kind: FILES[kind] for kind in EXPORTER_KINDS if kind in parts or kind in asked}
    found: dict[str, ProbeOutcome] = {}
    for probe in exporter_probes(kinds):
        part = parts.get(probe.name)
        outcome = _outcome(probe, part, asked.get(probe.name), at, pages)
        if outcome is not None and part is not None and not _as_live(outcome, part, manifest):
            unread.append(Unread(", ".join(part.files), outcome.detail))
        elif outcome is not None:
            found[probe.name] = outcome
    return found


def _plugin_of(files: Iterable[CapturedFile]) -> str:
    """The probe plug-in whose output some files hold; nvidia-smi if its own output is there, or that of no plug-in."""
    plugins = [file.content.plugin for file in files if file.content.probe == "gpu"]
    plugins = plugins or [file.content.plugin for file in files if file.content.plugin]
    return NVIDIA_SMI if "" in plugins or not plugins else plugins[0]


def _is_foreign(file: CapturedFile, accelerators: str) -> bool:
    """Whether a file contains the output of a probe that does not read this host."""
    if file.content.plugin:
        return file.content.plugin != accelerators
    return accelerators != NVIDIA_SMI and file.content.probe.partition(":")[0] in {"gpu", "nvlink"}


def _parts(files: Iterable[CapturedFile]) -> dict[str, _Part]:
    """The outputs by probe. One output may be spread over several files, and one file may hold several outputs."""
    found: dict[str, _Part] = {}
    for file in files:
        text, probe = file.text, file.content.probe
        if probe == "gpu" and "<nvidia_smi_log" not in text and "NVSMI LOG" in text:
            probe = SESSION
        texts = bundle_session.outputs(text) if probe == SESSION else {probe: text}
        for name, told in (texts or {SESSION: text}).items():
            before = found.get(name, _Part((), ()))
            added = _as_printed(told, name) if name in TABLES else told
            found[name] = _Part((*before.texts, added), (*before.files, file.name))
    return found


def _as_printed(text: str, probe: str) -> str:
    """A table in the form of ``grep -sH .``: a colon after absolute paths. Interfaces get absolute paths.

    Other relative paths keep the tab.
    """
    lines = []
    for line in text.splitlines():
        path, tab, value = line.partition("\t")
        if tab and probe != "infiniband" and _OF_INTERFACE.fullmatch(path):
            path = f"/sys/class/net/{path}"
        lines.append(f"{path}:{value}" if tab and path.startswith("/sys/") else line)
    return "\n".join(lines)


def _probes(parts: Mapping[str, _Part], asked: Mapping[str, CapturedProbe], accelerators: str) -> tuple[Probe, ...]:
    """The probes of a capture, in the order of a collection."""
    names = [name.partition(":")[2] for name in (*parts, *asked) if name.startswith("optics:")]
    every = probes_for(names, sudo=False, accelerators=accelerators)
    return tuple(p for p in every if p.name in parts or p.name in asked)


def _outcome(
    probe: Probe, part: _Part | None, asked: CapturedProbe | None, at: float, gathered: Gathered
) -> ProbeOutcome | None:
    """How a probe ended. ``None`` if its file is missing although the manifest says ok: it counts as not run."""
    ended = asked.exit_status if asked else None
    if part is None or (asked is not None and ended is None):
        if asked is None or asked.status is ProbeStatus.OK:
            return None
        return ProbeOutcome(probe.name, asked.status, at, asked.seconds, asked.detail)
    if ended is None:
        ended = 1 if probe.kind == "optics" and _NO_MODULE.match(part.text) else 0
    if not part.text.strip() and asked is None:
        return ProbeOutcome(probe.name, ProbeStatus.FAILED, at, 0.0, "is empty")
    status, detail = _take(probe, ended, part, at, gathered)
    return ProbeOutcome(probe.name, status, at, asked.seconds if asked else 0.0, detail)


def _take(probe: Probe, ended: int, part: _Part, at: float, gathered: Gathered) -> Verdict:
    """Read a probe's output. Several answers of nvidia-smi describe different GPUs, so none replaces another."""
    # The main command of a plug-in is called gpu as well; it has a file, and one answer.
    if probe.name != "gpu" or probe.file:
        status, detail = probe.take(ProbeAnswer(ended, part.text), at, gathered)
        if probe.name == "kernel" and status is ProbeStatus.FAILED and _is_quiet_syslog(part.text):
            return ProbeStatus.OK, ""
        return status, detail
    verdicts: list[Verdict] = []
    listed: dict[str, GpuReading] = {}
    for text in part.texts:
        one = Gathered()
        # nvidia-smi exits with an error when it complains; the file alone does not show the exit status.
        failed = ended or int(_DRIVER_SPEAKS.search(text[:_SMI_HEAD]) is not None and "<nvidia_smi_log" not in text)
        verdicts.append(probe.take(ProbeAnswer(failed, text), at, one))
        twice = [gpu.pci for gpu in one.gpus if listed.setdefault(gpu.pci, gpu) is not gpu]
        if twice:
            # It is unknown which answer is newer, so neither may count as complete.
            verdicts.append((ProbeStatus.FAILED, f"the GPU at {twice[0]} is listed twice, but read once"))
        gathered.lost_gpus += one.lost_gpus
    gathered.gpus = tuple(listed.values())
    return next((verdict for verdict in verdicts if verdict[0] is not ProbeStatus.OK), verdicts[0])


def _is_quiet_syslog(text: str) -> bool:
    """Whether a text is a kernel log in syslog's form (which the kernel probe never prints) that reports nothing."""
    told = parse_kernel_log(text)
    return told.unread is None and not told.lines and _SYSLOG.search(text) is not None


def _as_live(outcome: ProbeOutcome, part: _Part, manifest: HostManifest | None) -> bool:
    """Whether an outcome describes the host, as on a live host; if not, the file is damaged or holds something else."""
    if outcome.status in {ProbeStatus.OK, ProbeStatus.DENIED} or manifest is not None:
        return True
    return outcome.probe == "gpu" and _DRIVER_SPEAKS.search(part.text) is not None


def _take_counters_of_ports(parts: Mapping[str, _Part], at: float, gathered: Gathered) -> None:
    """Also read counters from the tables of states: a table made by hand may hold both."""
    texts = [parts[name].text for name in ("net", "infiniband", "counters") if name in parts]
    if texts:
        (probe,) = (probe for probe in probes_for((), sudo=False) if probe.name == "counters")
        probe.take(ProbeAnswer(0, "\n".join(texts)), at, gathered)


def _time_of(parts: Mapping[str, _Part], files: Iterable[CapturedFile]) -> float:
    """When a host was captured, from its files. Today's clock is never used, because it is unrelated."""
    logged = log_time(parts["kernel"].text) if "kernel" in parts else None
    said = [smi_time(text[:_SMI_HEAD]) for text in parts["gpu"].texts] if "gpu" in parts else []
    stated = max((time for time in said if time is not None), default=None)
    newest = max((file.modified for file in files), default=0.0)
    return next(time for time in (logged, stated, newest) if time is not None)


def _named_gpus(parts: Mapping[str, _Part]) -> tuple[str, ...]:
    text = parts["kernel"].text if "kernel" in parts else ""
    found = (find_pci(match[1] or match[2]) for match in _NAMED_GPU.finditer(text))
    return tuple(dict.fromkeys(pci for pci in found if pci is not None))


def _attached(parts: Mapping[str, _Part], gathered: Gathered) -> int | None:
    counted = [int(found) for found in _ATTACHED.findall(parts["gpu"].text)] if "gpu" in parts else []
    fewer = 0 < len(gathered.gpus) < max(counted, default=0) and not gathered.lost_gpus
    return max(counted) if fewer else None


def _snapshot(
    host: str, at: float, manifest: HostManifest | None, outcomes: Mapping[str, ProbeOutcome], gathered: Gathered
) -> HostSnapshot:
    return HostSnapshot(
        host=host,
        taken_at=at,
        reachable=manifest.reachable if manifest else True,
        error=manifest.error if manifest else None,
        host_key_problem=manifest.host_key_problem if manifest else False,
        probes=outcomes,
        boot_id=manifest.boot_id if manifest else None,
        booted_at=manifest.booted_at if manifest else None,
        **visible(gathered, outcomes, None),
    )
