"""What is wrong with the machine under the GPUs: memory, processors, disks, services, and the GPUs' driver."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime

from lumctl.fleet.host_readings import HostEvent, HostEventKind, Service
from lumctl.fleet.readings import GpuReading, ProbeOutcome, ProbeStatus
from lumctl.health.identity import BOOT_SLACK_S, pci_slot
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.cases import HostCase
from lumctl.health.states import Finding

_SAID = 160
"""Characters of a line of the log that a finding repeats."""
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
            since = min((event.at for event in events if event.at is not None), default=case.read_at)
            yield found(case.id, "host.kernel", kind.value, f"{events[-1].text[:_SAID]}{again}", since=since)


def _is_over(case: HostCase, event: HostEvent) -> bool:
    """Whether a file server answers again, or a GPU that could not be started is listed by nvidia-smi since."""
    if event.device is None or case.seen is None:
        return False
    if event.kind is HostEventKind.FILE_SERVER:
        later = case.seen.host_events[case.seen.host_events.index(event) + 1 :]
        return any(e.kind is HostEventKind.FILE_SERVER_BACK and e.device == event.device for e in later)
    if event.kind is not HostEventKind.GPU_START:
        return False
    return any(
        pci_slot(gpu.pci) == pci_slot(event.device) and (event.at is None or gpu.taken_at > event.at)
        for gpu in case.seen.gpus
    )


def driver(case: HostCase) -> Iterator[Finding]:
    """A driver that works for no GPU of the host, by nvidia-smi's own words."""
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
    """Services that GPUs need and that do not run although they are to start with the host."""
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
        evidence = f"{_FABRIC_MANAGER} was started again {count} times in ten minutes"
        yield found(case.id, "host.service", "restarting", evidence, since=case.services.taken_at)


def fabric_log(case: HostCase) -> Iterator[Finding]:
    """Errors that the fabric manager wrote into its log of late."""
    line = verdict("host.fabric-log", "error")
    errors = case.seen.fabric_errors if case.seen is not None and case.readable else ()
    recent = [error for error in errors if case.now - line.window_s < error.at <= case.now + line.window_s]
    if recent:
        times = f", {len(recent)} lines" if len(recent) > 1 else ""
        evidence = f"the fabric manager's log: {recent[-1].text[:160]}{times}"
        yield found(case.id, "host.fabric-log", "error", evidence, since=recent[0].at)


def _has_stopped(service: Service) -> bool:
    """Whether a service that is to run does not, or is started again and again."""
    stopped = service.state in {"failed", "inactive"} or service.sub_state == "auto-restart"
    return service.enabled and stopped


_FABRIC_MANAGER = "nvidia-fabricmanager"
_MOST_WITHOUT_SWITCHES = 4
"""The most GPUs that boards join by NVLink without switches between them."""


def _has_nvswitches(gpus: Collection[GpuReading]) -> bool:
    """Whether a host joins its GPUs by NVSwitches that its own fabric manager configures.

    Before the H100 nvidia-smi shows no fabric; eight modules on one board then mean that. If the fabric joins several
    hosts, its manager runs on the switches.
    """
    if _has_rack_fabric(gpus):
        return False
    modules = [gpu for gpu in gpus if "SXM" in (gpu.product or "")]
    tells_fabric = any(gpu.fabric.get("state", _NO_FABRIC).lower() != _NO_FABRIC for gpu in gpus)
    return tells_fabric or len(modules) > _MOST_WITHOUT_SWITCHES


_NO_FABRIC = "not supported"


def _is_of_a_rack(gpu: GpuReading) -> bool:
    """Whether the fabric of a GPU joins several hosts: then it has an identity."""
    told = next((gpu.raw[path] for path in ("fabric/clusterUuid", "fabric/clusteruuid") if path in gpu.raw), "")
    return any(digit not in "0-" for digit in told) and told.upper() != "N/A"


def _has_rack_fabric(gpus: Collection[GpuReading]) -> bool:
    """Whether the NVLink fabric of a host joins it to other hosts."""
    return any(_is_of_a_rack(gpu) for gpu in gpus)


def _is_not_persistent(gpus: Collection[GpuReading]) -> bool:
    """Whether the driver unloads an unused GPU: persistence mode may be set without a service too."""
    return any(gpu.persistence_enabled is False for gpu in gpus)


_NEEDED: Mapping[str, tuple[str, Callable[[Collection[GpuReading]], bool]]] = {
    _FABRIC_MANAGER: ("fabric-manager", _has_nvswitches),
    "nvidia-imex": ("imex", _has_rack_fabric),
    "nvidia-persistenced": ("persistence", _is_not_persistent),
}
"""The cases of host.service by unit, and which GPUs need it."""


def mounts(case: HostCase) -> Iterator[Finding]:
    """Paths that the inventory names and that are not mounted, and file systems that take no writes after an error."""
    table = case.mounts
    if table is None:
        return
    for path in case.needed_mounts:
        if path not in table.by_path:
            evidence = f"nothing is mounted at {path}, which the inventory names"
            yield found(case.id, "host.mount", "missing", evidence, since=table.taken_at, about=path)
    for path in dict.fromkeys(("/", *case.needed_mounts)):
        mount = table.by_path.get(path)
        if mount is not None and mount.stopped:
            evidence = f"{mount.source} at {path} takes no writes since an error"
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
        scarce = use.free_gib < full.limits["free_gib"]
        space = 100 * use.used if use.used is not None and scarce else 0.0
        inodes = 100 * use.inodes_used if use.inodes_used is not None else 0.0
        line = next((line for line in (full, nearly) if max(space, inodes) >= line.limit), None)
        if line is not None:
            what, share = ("inodes", inodes) if inodes > space else ("space", space)
            evidence = f"{share:.0f} % of the {what} of {use.path} is used, {use.free_gib:.1f} GiB are free"
            yield found(case.id, "host.disk", line.case, evidence, since=table.taken_at, about=use.path)


def clock(case: HostCase) -> Iterator[Finding]:
    """A clock that is apart from those of the rack's other hosts, by more than the time that reading it took."""
    line, reading, median = verdict("host.clock", "apart"), case.clock, case.rack_ahead_s
    if reading is None or median is None:
        return
    apart = max(reading.least_ahead_s - median, median - reading.most_ahead_s)
    if apart > line.limit:
        way = "ahead of" if reading.least_ahead_s > median else "behind"
        evidence = f"its clock is {apart:.1f} s {way} the rack's median (limit: {line.limit:g} s)"
        yield found(case.id, "host.clock", "apart", evidence, since=reading.taken_at)


def crash(case: HostCase) -> Iterator[Finding]:
    """Records that crashed kernels left."""
    line = verdict("host.crash", "recorded")
    crashes = case.seen.crashes if case.seen is not None and case.readable else ()
    recent = [at for at in crashes if at > case.now - line.window_s]
    if recent:
        when = datetime.fromtimestamp(recent[-1], UTC)
        evidence = f"its kernel crashed and left a record of {when:%Y-%m-%dT%H:%M:%SZ}"
        yield found(case.id, "host.crash", "recorded", evidence, since=recent[-1])


RULES = (kernel, driver, services, fabric_log, mounts, disks, clock, crash)
