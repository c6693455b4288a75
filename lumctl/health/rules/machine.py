"""Faults of the machine under the GPUs: memory, processors, disks, services, and the GPUs' driver."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime

from lumctl.fleet.host_readings import HostEvent, HostEventKind, Service
from lumctl.fleet.readings import GpuReading, ProbeOutcome, ProbeStatus
from lumctl.health.events import earliest_at
from lumctl.health.identity import BOOT_SLACK_S, pci_slot
from lumctl.health.rulebook import QUOTED, found, verdict
from lumctl.health.rules.cases import HostCase
from lumctl.health.states import Finding

# Most specific first: nvidia-smi begins several of these messages with "Failed to initialize NVML".
_DRIVER_UNUSABLE = (
    ("mismatch", "driver/library version mismatch"),
    ("not-loaded", "couldn't communicate with the nvidia driver"),
    ("not-loaded", "failed to initialize nvml: driver not loaded"),
    ("not-loaded", "couldn't find libnvidia-ml.so"),
    ("not-started", "failed to initialize nvml"),
)
"""The text of nvidia-smi if the driver works for none of the GPUs."""


def kernel(case: HostCase) -> Iterator[Finding]:
    """The kernel log's lines about the machine, one finding for each kind."""
    seen = case.seen
    if seen is None or not case.readable or not seen.host_events:
        return
    # Lines of an earlier boot do not count. The boot time itself may be off by the slack.
    begun = (seen.booted_at or 0.0) - BOOT_SLACK_S
    for kind in HostEventKind:
        oldest = max(case.now - verdict("host.kernel", kind.value).window_s, case.quiet_until, begun)
        events = [
            event
            for event in seen.host_events
            if event.kind is kind and (event.at is None or event.at > oldest) and not _is_over(case, event)
        ]
        if events:
            again = f", {len(events)} lines" if len(events) > 1 else ""
            since = earliest_at(events, default=case.read_at)
            yield found(case.id, "host.kernel", kind.value, f"{events[-1].text[:QUOTED]}{again}", since=since)


def _is_over(case: HostCase, event: HostEvent) -> bool:
    """Whether the fault of a line has ended: its file server answers again, or nvidia-smi now lists its GPU."""
    if event.device is None or case.seen is None:
        return False
    if event.kind is HostEventKind.FILE_SERVER:
        # By the order of the lines, because a line may have no time.
        later = case.seen.host_events[case.seen.host_events.index(event) + 1 :]
        return any(e.kind is HostEventKind.FILE_SERVER_BACK and e.device == event.device for e in later)
    if event.kind is not HostEventKind.GPU_START:
        return False
    return any(
        pci_slot(gpu.pci) == pci_slot(event.device) and (event.at is None or gpu.taken_at > event.at)
        for gpu in case.seen.gpus
    )


def driver(case: HostCase) -> Iterator[Finding]:
    """A driver that works for no GPU of the host, as nvidia-smi reports it."""
    outcome = case.seen.probes.get("gpu") if case.seen is not None and case.readable else None
    name = driver_unusable(outcome)
    if name is not None and outcome is not None:
        yield found(case.id, "host.driver", name, f"no GPU can be used: {outcome.detail}", since=outcome.taken_at)


def driver_unusable(outcome: ProbeOutcome | None) -> str | None:
    """The case of host.driver that the GPU probe shows; ``None`` if the driver works, or nothing is known."""
    if outcome is None or outcome.status is not ProbeStatus.FAILED:
        return None
    said = outcome.detail.lower()
    return next((name for name, words in _DRIVER_UNUSABLE if words in said), None)


def services(case: HostCase) -> Iterator[Finding]:
    """Services that the GPUs need and that are enabled but do not run, or that restart repeatedly."""
    if case.services is None or case.seen is None:
        return
    gpus = case.seen.gpus
    for unit, (name, is_needed_by) in _NEEDED.items():
        service = case.services.by_name.get(unit)
        if service is not None and _has_stopped(service) and is_needed_by(gpus):
            evidence = f"{unit} is {service.state} ({service.sub_state})"
            yield found(case.id, "host.service", name, evidence, since=case.services.taken_at)
    line = verdict("host.service", "restarting")
    restarts = case.trend.events(line.counter, line.window_s, case.now) if case.trend is not None else {}
    count = restarts.get(_FABRIC_MANAGER, 0)
    if line.reached_by(count) and _has_nvswitches(gpus):
        evidence = f"{_FABRIC_MANAGER} was restarted {count} times in ten minutes"
        yield found(case.id, "host.service", "restarting", evidence, since=case.services.taken_at)


def fabric_log(case: HostCase) -> Iterator[Finding]:
    """Recent errors in the fabric manager's log."""
    line = verdict("host.fabric-log", "error")
    errors = case.seen.fabric_errors if case.seen is not None and case.readable else ()
    recent = [error for error in errors if case.now - line.window_s < error.at <= case.now + line.window_s]
    if recent:
        times = f", {len(recent)} lines" if len(recent) > 1 else ""
        evidence = f"the fabric manager's log: {recent[-1].text[:QUOTED]}{times}"
        yield found(case.id, "host.fabric-log", "error", evidence, since=recent[0].at)


def _has_stopped(service: Service) -> bool:
    """Whether an enabled service does not run or is being restarted."""
    stopped = service.state in {"failed", "inactive"} or service.sub_state == "auto-restart"
    return service.enabled and stopped


_FABRIC_MANAGER = "nvidia-fabricmanager"
_MOST_WITHOUT_SWITCHES = 4
"""The maximum number of GPUs that one board connects by NVLink without switches."""


def _has_nvswitches(gpus: Collection[GpuReading]) -> bool:
    """Whether NVSwitches connect a host's GPUs and its own fabric manager configures them.

    For GPUs before the H100 nvidia-smi shows no fabric; then more modules than a board connects without switches show
    it. If the fabric connects several hosts, the fabric manager runs on the switches, not on the host.
    """
    if _has_rack_fabric(gpus):
        return False
    modules = [gpu for gpu in gpus if "SXM" in (gpu.product or "")]
    tells_fabric = any(gpu.fabric.get("state", _NO_FABRIC).lower() != _NO_FABRIC for gpu in gpus)
    return tells_fabric or len(modules) > _MOST_WITHOUT_SWITCHES


_NO_FABRIC = "not supported"


def _is_of_a_rack(gpu: GpuReading) -> bool:
    """Whether the fabric of a GPU connects several hosts: only such a fabric has a cluster UUID."""
    told = next((gpu.raw[path] for path in ("fabric/clusterUuid", "fabric/clusteruuid") if path in gpu.raw), "")
    return any(digit not in "0-" for digit in told) and told.upper() != "N/A"


def _has_rack_fabric(gpus: Collection[GpuReading]) -> bool:
    """Whether the NVLink fabric of a host connects it to other hosts."""
    return any(_is_of_a_rack(gpu) for gpu in gpus)


def _is_not_persistent(gpus: Collection[GpuReading]) -> bool:
    """Whether persistence mode is off on a GPU; it may be on even if the service does not run."""
    return any(gpu.persistence_enabled is False for gpu in gpus)


_NEEDED: Mapping[str, tuple[str, Callable[[Collection[GpuReading]], bool]]] = {
    _FABRIC_MANAGER: ("fabric-manager", _has_nvswitches),
    "nvidia-imex": ("imex", _has_rack_fabric),
    "nvidia-persistenced": ("persistence", _is_not_persistent),
}
"""By unit: the case of host.service, and whether some GPUs need the service."""


def mounts(case: HostCase) -> Iterator[Finding]:
    """Paths of the inventory that are not mounted, and file systems that accept no writes after an error."""
    table = case.mounts
    if table is None:
        return
    for path in case.needed_mounts:
        if path not in table.by_path:
            evidence = f"nothing is mounted at {path}, which the inventory lists"
            yield found(case.id, "host.mount", "missing", evidence, since=table.taken_at, about=path)
    for path in dict.fromkeys(("/", *case.needed_mounts)):
        mount = table.by_path.get(path)
        if mount is not None and mount.stopped:
            evidence = f"{mount.source} at {path} has been read-only since an error"
            yield found(case.id, "host.mount", "stopped", evidence, since=table.taken_at, about=path)


def disks(case: HostCase) -> Iterator[Finding]:
    """Local file systems without space, without inodes, or that answer with errors."""
    table = case.disks
    if table is None:
        return
    for path, said in table.unreadable.items():
        yield found(case.id, "host.mount", "broken", f"{path}: {said}", since=table.taken_at, about=path)
    full, nearly = verdict("host.disk", "full"), verdict("host.disk", "nearly-full")
    for use in table.uses:
        # On a large file system, a high share may leave plenty of space.
        scarce = use.free_gib < full.limits["free_gib"]
        space = 100 * use.used if use.used is not None and scarce else 0.0
        inodes = 100 * use.inodes_used if use.inodes_used is not None else 0.0
        line = next((line for line in (full, nearly) if max(space, inodes) >= line.limit), None)
        if line is not None:
            what, share = ("inodes", inodes) if inodes > space else ("space", space)
            evidence = f"{share:.0f} % of the {what} of {use.path} is used, {use.free_gib:.1f} GiB are free"
            yield found(case.id, "host.disk", line.case, evidence, since=table.taken_at, about=use.path)


def clock(case: HostCase) -> Iterator[Finding]:
    """A clock that differs from the rack's median by more than the limit, not counting the time to read it."""
    line, reading, median = verdict("host.clock", "apart"), case.clock, case.rack_ahead_s
    if reading is None or median is None:
        return
    apart = max(reading.least_ahead_s - median, median - reading.most_ahead_s)
    if apart > line.limit:
        way = "ahead of" if reading.least_ahead_s > median else "behind"
        evidence = f"its clock is {apart:.1f} s {way} the rack's median (limit: {line.limit:g} s)"
        yield found(case.id, "host.clock", "apart", evidence, since=reading.taken_at)


def crash(case: HostCase) -> Iterator[Finding]:
    """Recent crash records of the kernel."""
    line = verdict("host.crash", "recorded")
    crashes = case.seen.crashes if case.seen is not None and case.readable else ()
    recent = [at for at in crashes if at > case.now - line.window_s]
    if recent:
        when = datetime.fromtimestamp(recent[-1], UTC)
        evidence = f"its kernel crashed and left a record of {when:%Y-%m-%dT%H:%M:%SZ}"
        yield found(case.id, "host.crash", "recorded", evidence, since=recent[-1])


RULES = (kernel, driver, services, fabric_log, mounts, disks, clock, crash)
