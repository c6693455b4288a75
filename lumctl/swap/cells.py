"""One cell of a mesh or one join of a switch, set by hand: beside the circuits of the jobs, never through them."""

from dataclasses import replace

from lumctl.change.live_paths import cut_by, hear, live_paths, with_powers
from lumctl.change.plan import Cut, PlannedChange, PlannedCircuit
from lumctl.change.preconditions import held_now, require_agreement
from lumctl.devices import transaction
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import circuit_losses
from lumctl.inventory.components import Component, Part
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import FREE, circuits_of, in_the_way, own_cells
from lumctl.site import Site
from lumctl.swap.budgets import described
from lumctl.swap.steps import StepList

_STATES = {state.word: state for state in PucState}


def cell_of(site: Site, component: Component, text: str) -> PlannedChange | None:
    """What ``state=TEXT`` of a PUC or ``joined=TEXT`` of a port writes; ``None`` where it is joined to nothing already.

    Raises:
        UsageError: the value is wrong, or the port is not ours to join.
        RefusedError: what the device holds is not certain.
    """
    device = site.inventory.devices[str(component.device)]
    if component.part is Part.PUC:
        if text.lower() not in _STATES:
            raise UsageError(f"found {text!r}, expected bar or cross")
        after = _STATES[text.lower()]
        if device.stuck.get(component.number, after.word) != after.word:
            raise RefusedError(
                f"{component.id} is stuck in {device.stuck[component.number]}, {site.inventory.path} says",
                hint=f"if it no longer is, remove it from `stuck:` of {device.id} in the inventory",
            )
        return PlannedChange(device.id, component.number, held_now(site, device).get(component.number), str(after))
    return _join(site, device, component.number, text)


def plan_cell(
    site: Site, component: Component, change: PlannedChange, steps: StepList
) -> tuple[PlannedCircuit, ...] | None:
    """Add the steps that write a cell and prove that what its device carries still stands; gives the circuits kept.

    ``None``: the device shows already what is wanted, and nothing is to be done.

    Raises:
        RefusedError: a circuit of a job runs there; it is named.
    """
    device = site.inventory.devices[change.device]
    held = held_now(site, device)
    driver = site.devices.changing(device.id)
    if change.before == change.after and transaction.readable(driver):
        read = transaction.read_cells(driver, held)
        require_agreement(device.rack, driver.kind, device.id, {n: s for n, s in held.items() if n != change.puc}, read)
        if read.get(change.puc) == change.after:
            return None
    circuits = [c for c in circuits_of(site.inventory, site.assignment()) if c.device == device.id]
    made = circuit_losses(device, held, circuits)
    stays = circuit_losses(device, {**held, change.puc: change.after}, circuits)
    for circuit in circuits:
        if circuit.id in made and made[circuit.id] != stays.get(circuit.id):
            raise RefusedError(
                f"{component.id} carries circuit {circuit.id} of {circuit.owner}, which this would break",
                hint=f"lead that circuit round it first: lumctl swap plan {circuit.owner} --avoid {component.id}",
            )
    kept = [circuit for circuit in circuits if circuit.id in made]
    names = [circuit.id for circuit in kept]
    if names:
        steps.check([], kept=names, replaced=[])
    steps.program({device.id: [change]})
    if names:
        steps.verify([], names)
    steps.confirm([device.id] if Capability.CONFIRM_TIMER in driver.capabilities else [])
    return described(site.inventory, kept, {device.id: held})


def cuts_of(site: Site, change: PlannedChange) -> tuple[Cut, ...]:
    """The light paths that a change cuts at a device without a record, with the light on each, for the operator to see.

    Whoever sets a port or a PUC by name agrees to them. A path between two lanes in a rack with jobs is left out: a job
    may run there whose record is lost, so the change is refused for it.

    Raises:
        DeviceError: the device does not answer.
    """
    device = site.inventory.devices[change.device]
    if site.store(device.rack).last_written_by(device.id) is not None:
        return ()
    written = {device.id: {**held_now(site, device), change.puc: change.after}}
    lost = cut_by(site, live_paths(site, device, hear(site, [device.id])), written)
    has_jobs = any(job.rack == device.rack for job in site.inventory.jobs.values())
    return with_powers(site, [replace(cut, agreed=True) for cut in lost if not (cut.receiver and has_jobs)])


def _join(site: Site, device: Device, port: int, text: str) -> PlannedChange | None:
    """The join that a port of either side is part of, with what its ingress port is joined to by the record."""
    word = text.lower()
    if word != "none" and not (word.isascii() and word.isdecimal()):
        raise UsageError(f"found {text!r}, expected the number of a port, or none")
    held = held_now(site, device)
    own = own_cells(site.inventory, device) or tuple(held)
    if word == "none":
        # Where any port may be joined to any, one of ours may be at the other end of a join.
        ingress = next((at for at, to in held.items() if to == str(port)), port if port in own else None)
        if ingress is None and port >= device.input_count:
            return None
        after = FREE
    else:
        ingress, egress = _sides(device, port, int(word))
        after = str(egress)
        taken = in_the_way({at: to for at, to in held.items() if at != ingress}, ingress, egress)
        if taken is not None:
            used, other = taken if taken[0] in {ingress, egress} else taken[::-1]
            raise RefusedError(
                f"port {used} of {device.id} is joined to port {other}",
                hint=f"take that away first: lumctl device set {device.id}/port/{taken[0]} joined=none",
            )
    if ingress is None or ingress not in own:
        raise RefusedError(
            f"port {port if ingress is None else ingress} of {device.id} is met by no lane of {site.inventory.path}: "
            "it belongs to others",
            hint=f"see the ports: lumctl device show {device.id}",
        )
    return PlannedChange(device.id, ingress, held[ingress], after)


def _sides(device: Device, port: int, other: int) -> tuple[int, int]:
    if other >= device.port_count:
        raise UsageError(f"{device.id} has no port {other}", hint=f"they are 0 to {device.port_count - 1}")
    if other == port:
        raise UsageError(f"port {port} cannot be joined to itself")
    one_sided = device.input_count == device.port_count
    ingress, egress = min(port, other), max(port, other)
    if not one_sided and not ingress < device.input_count <= egress:
        side = "enters" if egress < device.input_count else "leaves"
        raise UsageError(
            f"light {side} at both port {port} and port {other} of {device.id}",
            hint=f"an input (0 to {device.input_count - 1}) is joined to an output "
            f"({device.input_count} to {device.port_count - 1})",
        )
    return ingress, egress
