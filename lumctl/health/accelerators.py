"""The verdict on an accelerator."""

from lumctl.health.judging import judge, state_of
from lumctl.health.look import HostLook, Look
from lumctl.health.matching import can_be_told_apart, pci_slot, xids_of
from lumctl.health.rules.expected import GPU_RULES
from lumctl.health.rules.gpu import RULES
from lumctl.health.rules.gpu_case import Absence, GpuCase
from lumctl.health.states import ComponentHealth, Finding, State
from lumctl.inventory.model import Accelerator

_RULES = (*RULES, *GPU_RULES)


def judge_accelerator(look: Look, accelerator: Accelerator) -> ComponentHealth:
    """Judge one accelerator; one out of service stays ``disabled``, and its findings stay to be seen."""
    disabled = accelerator.id in look.disabled
    collected = look.collected.get(accelerator.host)
    reading = collected.gpus.get(accelerator.id) if collected else None
    read_at = reading.taken_at if reading else None
    here = look.readable(accelerator.host)
    if here is None:
        # The host's own finding tells why.
        state = State.DISABLED if disabled else State.UNKNOWN
        return ComponentHealth(accelerator.id, "accelerator", state, read_at=read_at, disabled=disabled)
    stale = reading is not None and look.stale(reading.taken_at)
    probe = look.inventory.hosts[accelerator.host].probe
    case = GpuCase(
        id=accelerator.id,
        reading=None if stale else reading,
        stale=look.stale_evidence(reading.taken_at) if reading and stale else None,
        absence=_absence(accelerator, here),
        xids=xids_of(here.slots.get(accelerator.id), here.xids),
        thresholds=look.limits,
        read_at=read_at if read_at is not None else here.seen.taken_at,
        nvlinks=tuple(n for n in here.nvlinks.get(accelerator.id, ()) if not look.stale_nvlink(n)),
        trend=look.trend("accelerator", accelerator.id),
        beside=max(len(here.seen.gpus) - 1, 0),
        usual=look.usual_settings.get((accelerator.rack, reading.product or ""), {}) if reading else {},
        expected_nvlinks=look.expectations.nvlinks(accelerator),
        expected_pcie_width=look.expectations.pcie_width(accelerator),
        events=here.events,
        source=here.seen.gpus[0].source if here.seen.gpus else probe,
        reports=look.reports_of(here, accelerator),
        probe=probe,
        vendor_events=here.vendor_events_of(accelerator),
        now=look.now,
    )
    findings = judge(_RULES, case)
    otherwise = State.OK if case.reading is not None else State.UNKNOWN
    state = State.DISABLED if disabled else state_of(findings, otherwise=otherwise)
    return ComponentHealth(
        accelerator.id,
        "accelerator",
        state,
        findings,
        read_at,
        otherwise=otherwise,
        disabled=disabled,
        seen=_seen(case, here, findings),
    )


def _seen(case: GpuCase, here: HostLook, findings: tuple[Finding, ...]) -> frozenset[str]:
    """The probes that told of this accelerator; one that prints errors in place of values tells nothing."""
    told = {"host"}
    if case.absence in {Absence.NAMED_LOST, Absence.NOT_LISTED}:
        told.add("gpu")
    if case.reading is not None and not any(finding.rule == "gpu.silent" for finding in findings):
        told.add("gpu")
    if case.nvlinks:
        told.add("nvlink")
    if here.probe_ended_well("kernel"):
        told.add("kernel")
    return frozenset(told)


def _absence(accelerator: Accelerator, here: HostLook) -> Absence | None:
    """How an accelerator is missing from what its probe says; ``None`` if it is there or nothing was said."""
    slot = here.slots.get(accelerator.id)
    if slot is not None and slot in map(pci_slot, here.seen.lost_gpus):
        return Absence.NAMED_LOST
    if accelerator.id in here.gpus or not here.probe_ended_well("gpu"):
        return None
    if here.seen.lost_gpus and not here.seen.gpus:
        return Absence.LIST_ABORTED
    return Absence.NOT_LISTED if can_be_told_apart(accelerator, here.seen.gpus) else Absence.NOT_TOLD_APART
