"""What a plan needs and does not have: devices and hosts that answer, and transmitters that send.

Until then, the plan cannot be applied: its light could not be proved.
"""

from collections.abc import Iterable, Sequence

from lumctl.change.plan import Do, Plan, PlannedCircuit, receivers
from lumctl.change.refusal_advice import why_silent
from lumctl.errors import RefusedError
from lumctl.health.observation import NEW_S, Observation
from lumctl.health.replaced_faults import DARK
from lumctl.health.states import Finding, State
from lumctl.inventory.model import Evidence
from lumctl.time_text import moment_text


def silent_devices(seen: Observation, devices: Iterable[str]) -> list[Finding]:
    """The finding of each of some devices that does not answer."""
    report = seen.report.devices
    found = (finding for device in devices if device in report for finding in report[device].findings)
    return [finding for finding in found if finding.rule == "device.unreachable"]


def silent_hosts(seen: Observation, circuits: Iterable[PlannedCircuit]) -> list[Finding]:
    """The finding of each host that does not answer and without which some circuits cannot be proved."""
    lanes, hosts = seen.inventory.transponders, dict[str, None]()
    for circuit in circuits:
        for receiver, transmitter in receivers(circuit):
            # The receiver's neighbour table shows the transmitter that its host has just announced.
            if lanes[receiver].verify[0] is Evidence.LLDP:
                hosts |= dict.fromkeys((lanes[receiver].host, lanes[transmitter].host))
    unread = (seen.report.hosts[host] for host in hosts if host in seen.report.hosts)
    return [health.findings[0] for health in unread if health.otherwise is State.UNKNOWN and health.findings]


def reason_of(silent: Finding) -> str:
    """Why a device does not answer, in words."""
    return silent.evidence.removesuffix("; nothing was sent")


def written_devices(plan: Plan) -> tuple[str, ...]:
    """The devices that a plan programs."""
    return tuple(dict.fromkeys(str(step.data["device"]) for step in plan.steps if step.do is Do.PROGRAM))


class SilenceError(RefusedError):
    """Something that a plan needs does not answer, or sends no light.

    ``accelerators`` are those at the ends of its new circuits that are concerned.
    """

    def __init__(self, message: str, *, hint: str | None = None, accelerators: Iterable[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.accelerators = tuple(accelerators)


def silence_refusal(seen: Observation, plan: Plan) -> SilenceError | None:
    """The refusal of a plan that cannot succeed because something is silent or dark now; ``None`` if it can."""
    hosts, dark = silent_hosts(seen, plan.add), _dark_lanes(seen, plan)
    found = [*silent_devices(seen, written_devices(plan)), *hosts, *dark]
    if not found:
        return None
    silent = " and ".join(_words(each, seen.at) for each in found)
    named = {each.component for each in (*hosts, *dark)}
    ends = [seen.inventory.transponders[str(end["lane"])] for circuit in plan.add for end in circuit.ends]
    return SilenceError(
        f"no swap can be applied while {silent}",
        hint=why_silent([each.component for each in found], seen.target),
        accelerators=dict.fromkeys(lane.accelerator for lane in ends if {lane.id, lane.host} & named),
    )


def _dark_lanes(seen: Observation, plan: Plan) -> list[Finding]:
    """The finding of each transmitter that sends no light, is needed by a new circuit and is not lit by the plan."""
    lit = {step.data["transponder"] for step in plan.steps if step.do is Do.TRANSMIT and step.data["enabled"]}
    lanes = dict.fromkeys(lane for circuit in plan.add for _, lane in receivers(circuit) if lane not in lit)
    return [finding for lane in lanes for finding in seen.report.links[lane].findings if finding.rule == DARK]


def until_answered(devices: Sequence[str]) -> str:
    """How long something has to wait for these devices, in words."""
    return f"until {' and '.join(devices)} {'answer' if devices[1:] else 'answers'}"


def _words(silent: Finding, now: float) -> str:
    if silent.rule == DARK:
        return f"{silent.component} sends no light"
    # No age: a job that tries again and again would report each new one.
    since = f", since {moment_text(silent.since)}" if now - silent.since >= NEW_S else ""
    return f"{silent.component} does not answer ({reason_of(silent)}{since})"
