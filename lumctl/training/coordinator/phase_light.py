"""Light that changes between the phases of a training step: permits, requests of ranks, and rest between groups.

Whenever the ranks leave their group, the light rests: the devices get the phase that the store has on record, so that
health, swaps and other commands see what the record says. A new group joins only under a permit that fits where its
ranks run, and that was proved again if light did not arrive in the group before.
"""

import hmac
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lumctl import store
from lumctl.devices.errors import DeviceError, DeviceUnreachableError, RackLeasedError
from lumctl.errors import LumctlError, UnreachableError
from lumctl.store.journal import LIGHT_FAILED
from lumctl.training.coordinator import failures, job_end
from lumctl.training.coordinator.changing_light import ChangingLight
from lumctl.training.coordinator.state import JobEnd, JobState
from lumctl.training.coordinator.workers import JobWorker
from lumctl.training.phase_control import PhaseControl, RankRequest
from lumctl.training.phase_evidence import PhaseEvidence
from lumctl.training.phase_permission import PhasePermit
from lumctl.training.phase_prover import ProofResult
from lumctl.training.protocol import DARK, LIT, phase_mac

FIRST_ENTRY_S = 1.0
"""When a new group's first entry is written into the journal, so that health soon knows of its light."""
RETRY_S = 0.5
"""When rest or a permit is tried again that something passing has prevented."""
_PASSING = (UnreachableError, DeviceUnreachableError, RackLeasedError, store.LeaseHeldError)
"""What prevents a permit only for now: a gateway or device that starts again, a run that changes the rack."""


def is_ready(state: JobState) -> bool:
    """Whether a group may join: its job has no phases, or the light rests and is permitted to change."""
    light = state.light
    if light is None:
        return True
    waits = light.is_sought or state.effects.now() < light.retry_at
    if not waits and light.permit is None and light.is_at_rest:
        light.is_sought, light.is_void = True, False
        light.effects.obtain(light.again)
    return light.permit is not None


def go_on(state: JobState) -> None:
    """Do what is due: let light rest again if that has failed, prove light that is used, write into the journal."""
    light = state.light
    if light is None:
        return
    if light.control is None and state.effects.now() >= light.retry_at:
        light.rest()
    now = state.effects.now()
    light.begin_proofs(now)
    if now >= light.entry_at:
        light.write_entry(now)


def is_at_rest(state: JobState) -> bool:
    """Whether no phase but the one on record has light, as far as is known."""
    return state.light is None or state.light.is_at_rest


def needs_permit(state: JobState) -> bool:
    """Whether a group cannot join before a permit was obtained."""
    return state.light is not None and state.light.permit is None


def found_running(state: JobState) -> None:
    """Note that another lumctl has run the job: any of its phases may have light."""
    if state.light is not None:
        state.light.is_at_rest, state.light.again = False, True


def next_due(state: JobState) -> float:
    """When rest or a permit is tried again, light is proved, or an entry is written; infinity if nothing waits."""
    light = state.light
    if light is None:
        return math.inf
    if light.control is None:
        return light.retry_at if light.retry_at > state.effects.now() else math.inf
    return min(light.proof_due_at(), light.entry_at)


def permitted(state: JobState, permit: PhasePermit) -> None:
    """Take a permit for the next group."""
    light = state.light
    if light is None:
        return
    light.is_sought, light.why = False, ""
    if not light.is_void:  # else the ranks have left a group since it was asked for, and a swap may end it
        if light.again:
            state.effects.say(f"each phase is proved; {permit.plan} permits changes between {', '.join(permit.pairs)}")
        light.permit, light.again = permit, False


def not_permitted(state: JobState, error: LumctlError) -> None:
    """Handle that a phase cannot be proved, or that light may not be changed."""
    light = state.light
    if light is None:
        return
    light.is_sought = False
    why = f"its light cannot change between phases: {_with_hint(error)}"
    if isinstance(error, _PASSING):
        _try_again(state, light, why)
        return
    state.failed_attempts += 1
    if state.most_done == 0 or state.failed_attempts > state.run.restarts:
        job_end.give_up(state, why, JobEnd.NO_LIGHT)
    else:
        state.effects.say(f"{why}; it is tried again")


def rested(state: JobState, error: LumctlError | None) -> None:
    """Note that the devices have the phase on record again, or why that is not certain."""
    if (light := state.light) is None:
        return
    light.is_resting = False
    if isinstance(error, DeviceError | UnreachableError):
        _try_again(state, light, f"its phases are not at rest: {_with_hint(error)}")
        return
    light.is_at_rest, light.why = True, ""
    if error is not None:
        light.again = True  # nothing is believed of the light until each phase is proved
        state.effects.say(f"the light of its phases is uncertain, and each is proved again: {error.message}")


def _with_hint(error: LumctlError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _try_again(state: JobState, light: ChangingLight, why: str) -> None:
    light.retry_at = state.effects.now() + RETRY_S
    if light.why != why:
        state.effects.say(f"{why}; it is tried again")
    light.why = why


def for_ranks(state: JobState, hosts: Sequence[str]) -> dict[str, Any]:
    """What the ranks of a group, on these hosts, must know of phases; empty for a job without phases."""
    if state.light is None or state.light.permit is None:
        return {}
    return {"phases": {"pairs": state.light.permit.pairs, "hosts": list(hosts)}}


def begin(state: JobState) -> None:
    """Let the ranks of the group that is told to join change the light."""
    light = state.light
    if light is None or light.permit is None:
        return
    generation = state.group.generation
    light.control = PhaseControl(
        light.permit.rails,
        change=lambda rail, phase, number: _change(state, rail, phase, number),
        lit=lambda request: _grant(state, light, generation, request),
        dark=lambda request, why: _tell(state, generation, request, {"do": DARK, "why": why}),
    )
    light.control.begin(lit=light.permit.lit)
    light.evidence = _evidence(state, light, light.permit)
    light.is_at_rest = False
    light.entry_at = state.effects.now() + FIRST_ENTRY_S
    light.effects.begin(light.permit)


def _evidence(state: JobState, light: ChangingLight, permit: PhasePermit) -> PhaseEvidence:
    """What is known of the light of a group that begins. Another lumctl may have left all its steps provisional."""
    done, now = state.group.resume_point.done if state.group.resume_point is not None else 0, state.effects.now()
    former = light.evidence
    shown = {**(former.shown if former is not None else {}), **dict.fromkeys(permit.proved, now)}
    found = PhaseEvidence(permit.rails, permit.single, done, shown)
    found.doubt(former.proven if former is not None else 0, permit.proved, now)
    if former is not None:
        found.by_traffic, found.by_proof = former.by_traffic, former.by_proof
    for at, rail in enumerate(permit.rails):
        if permit.lit in rail.pairs:
            found.lit(at, permit.lit, 0, now)
    return found


def wanted(state: JobState, worker: JobWorker, message: Mapping[str, Any]) -> None:
    """Take a rank's request for a phase. One that is not proved to be of that rank is refused and counted."""
    light = state.light
    if light is None or light.control is None or worker.seat is None:
        return
    number, phase = int(message["number"]), str(message["phase"])
    meant = phase_mac(state.effects.token, worker.name, state.group.generation, number, phase)
    if not hmac.compare_digest(meant, str(message.get("mac"))):
        light.refused["unproved"] += 1
        return
    request = RankRequest(worker.seat, phase, number, ahead=message.get("ahead") is True)
    if (why := light.control.wants(request)) is not None:
        light.refused["unknown"] += 1
        _tell(state, state.group.generation, request, {"do": DARK, "why": why})


def stepped(state: JobState, worker: JobWorker, said: Mapping[str, Any] | None) -> None:
    """Keep what a rank says of the changes of light in a step, and of what arrived by it."""
    light = state.light
    if light is None or said is None:
        return
    light.record.note(worker.done, said)
    if light.permit is not None and worker.seat is not None:
        light.profiles.note(light.permit.plan, worker.seat, said)
    if light.evidence is not None and worker.seat is not None:
        light.evidence.stepped(worker.seat, worker.done, said["traffic"], state.effects.now())


def outdated(state: JobState) -> None:
    """Count a request of a former group."""
    if state.light is not None:
        state.light.refused["outdated"] += 1


def formed(state: JobState) -> None:
    """Note that all members have joined, and have forgotten the states of later steps, whose light was wrong."""
    if state.light is not None:
        state.light.most_steps = None


def ended(state: JobState) -> None:
    """Note that no rank uses light any more, so that no phase is shown as lit by the job."""
    if state.light is not None:
        state.light.write_entry(math.inf)
        state.light.control = None


def leaves(state: JobState, worker: JobWorker) -> None:
    """Note that a rank needs no light any more."""
    if state.light is not None and state.light.control is not None and worker.seat is not None:
        state.light.control.leaves(worker.seat)


def confirmed(state: JobState, permit: PhasePermit, rail: int, number: int) -> None:
    """Handle that all devices of a rail have confirmed a change."""
    light = state.light
    if light is not None and light.control is not None and light.permit is permit:
        light.changes += 1
        now = state.effects.now()
        light.took_s[rail] = now - light.began_at[rail]
        light.worst_s = max(light.worst_s, light.took_s[rail])
        phase = light.control.rails[rail].changing_to
        if number != light.control.rails[rail].changes or phase is None or light.evidence is None:
            return
        light.evidence.lit(rail, phase, number, now)
        is_due = light.evidence.due_at(rail) <= now
        light.control.confirmed(rail, number, light.proof_manner(rail, phase) if is_due else None)
        if is_due:
            light.effects.prove(permit, rail, phase)


def failed(state: JobState, permit: PhasePermit, rail: int, number: int, why: str) -> None:
    """Handle that a change of a rail failed."""
    light = state.light
    if light is not None and light.control is not None and light.permit is permit:
        light.failed_changes += 1
        light.again = True
        devices, phase = permit.rails[rail].devices, light.control.rails[rail].changing_to
        state.effects.say(f"{', '.join(devices)}: the light did not change: {why}")
        light.effects.journal(LIGHT_FAILED, {"plan": permit.plan, "devices": list(devices), "phase": phase, "why": why})
        light.control.failed(rail, number, why)


def proof_ended(state: JobState, permit: PhasePermit, result: ProofResult) -> None:
    """Handle the result of a proof. If the light is wrong, training returns to the last step that is proven."""
    light = state.light
    if light is None or light.control is None or light.evidence is None or light.permit is not permit:
        return
    if result.wrong:
        _is_wrong(state, light, light.evidence, permit, result)
        return
    if result.unknown:
        light.evidence.not_proved(result.rail, state.effects.now())
        if light.unproved.get(result.rail) != result.unknown:
            state.effects.say(f"{_named(permit, result)} is not proved: {result.unknown}; it is tried again")
    else:
        light.evidence.proved(result.rail, result.phase, result.began)
    light.unproved[result.rail] = result.unknown
    light.control.end_proof(result.rail)


def _is_wrong(
    state: JobState, light: ChangingLight, evidence: PhaseEvidence, permit: PhasePermit, result: ProofResult
) -> None:
    light.failed_proofs += 1
    light.again, light.most_steps = True, evidence.proven
    evidence.is_wrong(result.rail)
    for worker in state.workers:  # a checkpoint of a later step is none to resume from
        worker.saved = {key: path for key, path in worker.saved.items() if key[1] <= evidence.proven}
    why = f"{_named(permit, result)} is wrong: {result.wrong}"
    state.effects.say(f"{why}; {evidence.proven} steps are proven")
    devices = list(permit.rails[result.rail].devices)
    light.effects.journal(
        LIGHT_FAILED, {"plan": permit.plan, "devices": devices, "phase": result.phase, "why": result.wrong}
    )
    failures.fail(state, [], why, result.began)


def _named(permit: PhasePermit, result: ProofResult) -> str:
    return f"{', '.join(permit.rails[result.rail].devices)}: the light of phase {result.phase}"


def document(light: ChangingLight) -> dict[str, Any]:
    """The light of a job as data: the phases that have light now, by device, and counts."""
    control = light.control
    lit = {device: rail.lit for rail in (control.rails if control is not None else ()) for device in rail.rail.devices}
    counts = {"changes": light.changes, "failed_changes": light.failed_changes, "refused": dict(light.refused)}
    return {"lit": lit, "plan": light.profiles.plan, **counts, **_proofs(light), **light.record.document()}


def _proofs(light: ChangingLight) -> dict[str, Any]:
    evidence = light.evidence
    if evidence is None:
        return {"proofs": None}
    counts = {"by_traffic": evidence.by_traffic, "by_proof": evidence.by_proof, "failed": light.failed_proofs}
    return {"proofs": {**counts, "proven_steps": evidence.proven, "provisional_steps": evidence.provisional}}


def totals(light: ChangingLight) -> dict[str, float]:
    """What the changes of a job have cost in all, for metrics."""
    return {"changes": light.changes, "failed_changes": light.failed_changes, **light.record.totals()}


def _change(state: JobState, rail: int, phase: str, number: int) -> None:
    if (light := state.light) is not None:
        light.began_at[rail] = state.effects.now()
        if light.evidence is not None:
            light.evidence.dark(rail)
        light.effects.change(rail, phase, number)


def _grant(state: JobState, light: ChangingLight, generation: int, request: RankRequest) -> None:
    control = light.control
    rail = control.rail_of(request.rank) if control is not None else None
    if control is not None and rail is not None and light.evidence is not None:
        light.evidence.granted(request.rank, request.number, control.rails[rail].changes)
    _tell(state, generation, request, {"do": LIT, "change_s": light.change_s(request.rank)})


def _tell(state: JobState, generation: int, request: RankRequest, order: Mapping[str, Any]) -> None:
    if generation == state.group.generation and request.rank in state.group.members:
        worker = state.workers[state.group.members[request.rank]]
        # No order of `orders.send`: it is repeated when the rank repeats its request.
        message = {**order, "generation": generation, "number": request.number}
        state.effects.ask(worker.host, {"ask": "tell", "worker": worker.name, "message": message})
