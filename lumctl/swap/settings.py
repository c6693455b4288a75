"""Single settings of one component, as an operator types them, planned like any other change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lumctl.change.disturbance import disturbed
from lumctl.change.live_paths import cut_by, hear, live_paths, with_powers
from lumctl.change.plan import Cut, Plan, PlannedChange, PlannedCircuit, Start, Step, programmed
from lumctl.change.preconditions import held_now, require, require_agreement
from lumctl.change.settings import (
    RESET,
    Settable,
    Value,
    kind_in_words,
    no_setting,
    same,
    settable,
    setting_of,
    settings_of,
)
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.components import Component, Part, find_component, parts_of
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.inventory.wiring import FREE, circuits_of, in_the_way, own_cells
from lumctl.swap.light_paths import planned_circuits
from lumctl.swap.steps import StepList

_STATES = {state.word: state for state in PucState}


def cell_of(context: Context, component: Component, text: str) -> PlannedChange | None:
    """The change for ``state=TEXT`` of a PUC or ``joined=TEXT`` of a port; ``None`` if it is already disconnected.

    Raises:
        UsageError: the value is wrong.
        RefusedError: the PUC is stuck, a port is connected elsewhere or has no lane of the inventory, or the device's
            states are uncertain.
    """
    device = context.inventory.devices[str(component.device)]
    if component.part is Part.PUC:
        if text.lower() not in _STATES:
            raise UsageError(f"found {text!r}, expected bar or cross")
        after = _STATES[text.lower()]
        if device.stuck.get(component.number, after.word) != after.word:
            raise RefusedError(
                f"{component.id} is stuck in {device.stuck[component.number]} according to {context.inventory.path}",
                hint=f"if it is no longer stuck, remove it from `stuck:` of {device.id} in the inventory",
            )
        return PlannedChange(device.id, component.number, held_now(context, device).get(component.number), str(after))
    return _join(context, device, component.number, text)


def plan_cell(
    context: Context, component: Component, change: PlannedChange, steps: StepList
) -> tuple[PlannedCircuit, ...] | None:
    """Add the steps that write a cell and prove the other circuits of its device; return the kept circuits.

    Return ``None`` if the device already has the requested state, so that there is nothing to do.

    Raises:
        RefusedError: the change would break a circuit of a job; the message names it.
    """
    device = context.inventory.devices[change.device]
    held = held_now(context, device)
    driver = context.devices.changing(device.id)
    # The record has this state already; only the device can tell whether it still holds it.
    if change.before == change.after and transaction.readable(driver):
        read = transaction.read_cells(driver, held)
        require_agreement(device.rack, driver.kind, device.id, {n: s for n, s in held.items() if n != change.puc}, read)
        if read.get(change.puc) == change.after:
            return None
    stands = FabricStates(context.inventory, {**context.known_fabric(device.rack), device.id: held})
    after = stands.with_changed({device.id: {change.puc: change.after}})
    paths = {c: stands.path_of(c) for c in circuits_of(context.inventory, context.assignment())}
    kept = [c for c, path in paths.items() if path and device.id in {part.device for part in path.segments}]
    for circuit in kept:
        if paths[circuit] != after.path_of(circuit):
            raise RefusedError(
                f"{component.id} carries circuit {circuit.id} of {circuit.owner}, which this would break",
                hint=f"reroute that circuit first: lumctl swap plan {circuit.owner} --avoid {component.id}",
            )
    names = [circuit.id for circuit in kept]
    if names:
        steps.check([], kept=names, replaced=[])
    steps.program({device.id: [change]})
    if names:
        steps.verify([], names)
    steps.confirm([device.id] if Capability.CONFIRM_TIMER in driver.capabilities else [])
    return planned_circuits(context.inventory, kept, stands.cells)


def cuts_of(context: Context, change: PlannedChange) -> tuple[Cut, ...]:
    """The light paths that a change cuts at a device without a record, with the light on each, for the operator to see.

    An operator who sets a port or a PUC by name agrees to them. A path between two lanes in a rack with jobs is
    omitted: a job without a record may use it, so the change is refused because of it.

    Raises:
        DeviceError: the device does not answer.
    """
    device = context.inventory.devices[change.device]
    if context.store(device.rack).fabric.last_written_by(device.id) is not None:
        return ()
    written = {device.id: {**held_now(context, device), change.puc: change.after}}
    lost = cut_by(context, live_paths(context, device, hear(context, [device.id])), written)
    has_jobs = any(job.rack == device.rack for job in context.inventory.jobs.values())
    return with_powers(context, [replace(cut, agreed=True) for cut in lost if not (cut.receiver and has_jobs)])


def _join(context: Context, device: Device, port: int, text: str) -> PlannedChange | None:
    """The change of the join that a port, ingress or egress, is part of, with the present join of the ingress port."""
    word = text.lower()
    if word != "none" and not (word.isascii() and word.isdecimal()):
        raise UsageError(f"found {text!r}, expected the number of a port, or none")
    held = held_now(context, device)
    own = own_cells(context.inventory, device) or tuple(held)
    if word == "none":
        # On a switch that can join any two ports, this port may be the egress port of a join.
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
                f"port {used} of {device.id} is connected to port {other}",
                hint=f"disconnect it first: lumctl device set {device.id}/port/{taken[0]} joined=none",
            )
    if ingress is None or ingress not in own:
        raise RefusedError(
            f"no lane of {context.inventory.path} is connected to port {port if ingress is None else ingress} of "
            f"{device.id}: it belongs to others",
            hint=f"see the ports: lumctl device show {device.id}",
        )
    return PlannedChange(device.id, ingress, held[ingress], after)


def _sides(device: Device, port: int, other: int) -> tuple[int, int]:
    if other >= device.port_count:
        raise UsageError(f"{device.id} has no port {other}", hint=f"valid numbers: 0 to {device.port_count - 1}")
    if other == port:
        raise UsageError(f"port {port} cannot be connected to itself")
    one_sided = device.input_count == device.port_count
    ingress, egress = min(port, other), max(port, other)
    if not one_sided and not ingress < device.input_count <= egress:
        side = "enters" if egress < device.input_count else "leaves"
        raise UsageError(
            f"light {side} at both port {port} and port {other} of {device.id}",
            hint=(
                f"an input (0 to {device.input_count - 1}) is connected to an output ({device.input_count} to "
                f"{device.port_count - 1})"
            ),
        )
    return ingress, egress


def plan_settings(context: Context, name: str, words: Sequence[str], *, even_if_used: bool = False) -> Plan:
    """Plan the ``SETTING=VALUE`` words for one component. The plan has no steps if all values are set already.

    ``even_if_used`` allows single settings to take light or a machine from a job, but never cells of its circuits.

    Raises:
        UsageError: the component, a setting or a value is wrong; all are checked before a device is read.
        UnsupportedError: its driver cannot set this.
        RefusedError: a job would lose light or a machine, or the device's states are uncertain.
        DeviceError: the present value cannot be read.
    """
    component = component_to_set(context, name)
    values, cell = _understood(context, component, _split(words, forms_of(context.inventory, component)[0]))
    steps, warnings = StepList(context.inventory), list[str]()
    keep = plan_cell(context, component, cell, steps) if cell else None
    if cell and keep is not None and cell.before == cell.after:
        warnings.append(f"{component.id} is recorded as already so: it is written again")
    for setting, value in values:
        warnings += _add(context, setting, value, steps, even_if_used=even_if_used)
    jobs = {job.name for job in context.inventory.jobs.values() if job.rack == component.rack}
    placed = {job: ranks for job, ranks in context.assignment(sound=False).items() if job in jobs}
    written = context.inventory.devices[cell.device] if cell and keep is not None else None
    # The record of a device lists its own cells; a switch without a lane of the inventory has none.
    device = written if written and own_cells(context.inventory, written) else None
    plan = Plan(
        kind="set",
        title=f"set {component.id} {' '.join(words)}",
        rack=component.rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=context.inventory.digest,
        start=Start.of(placed, {device.id: held_now(context, device)} if device else {}),
        keep=keep or (),
        changes=programmed(steps.steps),
        steps=tuple(steps.steps),
        warnings=tuple(warnings),
        cuts=cuts_of(context, cell) if cell and keep is not None else (),
    ).sealed()
    # Refused now, before an operator is asked to confirm what could not be applied.
    require(context, plan)
    return plan


def component_to_set(context: Context, name: str) -> Component:
    """The component of that name; the controller of one host means that host's power.

    Raises:
        UsageError: there is no component of that name, or a controller has several hosts or none.
    """
    found = find_component(context.inventory, name)
    if found.part is not Part.DEVICE or context.inventory.devices[found.id].kind is not DeviceKind.POWER:
        return found
    parts = parts_of(context.inventory, found.id)
    if len(parts) == 1:
        return parts[0]
    known = ", ".join(part.id for part in parts)
    raise UsageError(f"{name} controls the power of {len(parts)} hosts", hint=f"say which: {known}" if parts else None)


Inverse = tuple[Settable, Value | None, Value]


def inverse_setting(context: Context, step: Step, was: Value | None, *, took: bool) -> Inverse | str:
    """How to undo a setting of a run: the setting, its present and its earlier value; or why it cannot be undone.

    If ``took``, the run saw the setting take effect. Otherwise that is unknown, and the device is read.

    Raises:
        DeviceError: the device cannot be read.
    """
    meant = settable(context.inventory, context.devices, step.data["component"], step.data["setting"])
    after = step.data["after"]
    if not meant.setting.reversible(after):
        return f"{meant.component.id}: {meant.text(after)} cannot be undone"
    if was is None:
        return f"the earlier {meant.setting.name} of {meant.component.id} is unknown: it is left unchanged"
    return meant, meant.setting.shows(after) if took else meant.read(), was


def _split(words: Sequence[str], forms: Mapping[str, str]) -> dict[str, str]:
    """The typed settings, by name; each name may be given once."""
    found: dict[str, str] = {}
    typed = " ".join(f"{name}={form}" for name, form in forms.items()) or None
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{word!r} is not of the form SETTING=VALUE", hint=typed)
        if name in found:
            raise UsageError(f"{name} is given twice")
        found[name] = text
    return found


def _understood(
    context: Context, component: Component, texts: Mapping[str, str]
) -> tuple[list[tuple[Settable, Value]], PlannedChange | None]:
    """Parse every word before any setting is read; return single settings with their values, and a cell to program."""
    forms, programmed_name = forms_of(context.inventory, component)
    if not forms:
        raise UsageError(
            f"{component.id} is {kind_in_words(context.inventory, component)}: it has no settings",
            hint=_instead(context, component),
        )
    values: list[tuple[Settable, Value]] = []
    cell: PlannedChange | None = None
    for name, text in texts.items():
        if name not in forms:
            raise no_setting(context.inventory, component, name, forms)
        try:
            if name == programmed_name:
                cell = cell_of(context, component, text)
            else:
                setting = setting_of(context.inventory, component, name)
                values.append((Settable(context.inventory, context.devices, component, setting), setting.parse(text)))
        except UsageError as error:
            raise UsageError(f"{name}: {error.message}", hint=error.hint) from None
    return values, cell


def forms_of(inventory: Inventory, component: Component) -> tuple[dict[str, str], str | None]:
    """The forms of a component's settings, and the setting that is programmed through cells, if there is one."""
    forms = {each.name: each.form for each in settings_of(inventory, component).values()}
    if component.part is Part.PUC:
        return {"state": "bar|cross"}, "state"
    if component.part is Part.PORT and forms:
        return {**forms, "joined": "PORT|none"}, "joined"
    return forms, None


def _instead(context: Context, component: Component) -> str | None:
    """The hint for a device that has no settings itself: the parts that an operator may have meant."""
    device = context.inventory.devices[str(component.device)]
    if device.kind is DeviceKind.CHASSIS:
        parts = ", ".join(part.id for part in parts_of(context.inventory, device.id))
        return f"its transponders: {parts or 'none'}"
    if device.kind is DeviceKind.SWITCH:
        return f"its ports: lumctl device set {device.id}/port/0 joined=PORT|none"
    return f"its PUCs: lumctl device set {device.id}/puc/0 state=bar|cross"


def _add(context: Context, setting: Settable, value: Value, steps: StepList, *, even_if_used: bool) -> list[str]:
    """Add the step that sets a value unless it is set already; return a warning for the operator, if there is one."""
    component, text = setting.component, setting.text(value)
    setting.require(value)
    before = setting.read()
    if setting.setting.name == "power" and before is None:
        raise RefusedError(
            f"{component.id} is neither on nor off now",
            hint=f"wait until its state has settled: lumctl device show {component.id}",
        )
    if setting.setting.reversible(value) and same(before, setting.setting.shows(value)):
        return [f"{component.id} already shows {text}"]
    if value == RESET and before == "off":
        raise RefusedError(
            f"{component.id} is off: there is nothing to reset",
            hint=f"switch it on: lumctl device set {component.id} power=on",
        )
    used = disturbed(context, component, setting.setting.name, value)
    if used and not even_if_used:
        more = f" (and {len(used) - 1} more)" if len(used) > 1 else ""
        raise RefusedError(
            f"{text} is refused: {used[0].how}{more}",
            hint="to disturb it nevertheless, add --even-if-used",
        )
    steps.set(setting, before, value, [each.name for each in used])
    warnings = [f"{each.how}: this change disturbs it" for each in used]
    if not setting.setting.reversible(value):
        warnings.append(f"{text} cannot be undone")
    elif before is None:
        warnings.append(
            f"{component.id} does not report its present {setting.setting.name}: the change cannot be undone"
        )
    return warnings
