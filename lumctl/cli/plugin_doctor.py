"""``lumctl plugin doctor``.

Whether installed plug-ins are valid, and whether the devices that use them answer.
"""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.devices.doctor import DoctorFinding, examine
from lumctl.devices.drivers import DriverInfo, few, installed, not_installed, users_of_drivers
from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.offers import PROBES, offered

if TYPE_CHECKING:
    from lumctl.context.roll_call import ComponentAnswer
    from lumctl.inventory.model import Inventory

COLUMNS = (
    OutputColumn("STATE", "state"),
    OutputColumn("DRIVER", "driver"),
    OutputColumn("FINDING", "text"),
    OutputColumn("ADVICE", "advice"),
)


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "doctor")(command)


def command(
    cx: Invocation,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One plug-in; all of them unless said.")] = None,
) -> int:
    """Check each driver: whether it loads, what it declares, where that was proven, what it imports.

    Also checks each kind of job control. With an inventory, it checks the plug-ins that the inventory uses and whether
    their devices answer on the target, and lists the others as not used. Without one, it checks all installed plug-ins.
    Exits 4 if a check fails.
    """
    from lumctl.jobs import doctor

    kinds = doctor.kinds()
    probes = offered(PROBES)
    named, inventory = _named(name, (*installed(), *kinds, *probes)), _inventory(cx)
    found: list[DoctorFinding] = []
    if inventory is not None and name is None:
        idle = [info for info in named if info.name not in _wanted(inventory)]
        named = [info for info in named if info not in idle]
        found += [_not_used(info.name, inventory) for info in idle]
    found += _ssh() if name is None else []
    controls = [info for info in named if info in kinds]
    readers = [info for info in named if info in probes]
    drivers = [info for info in named if info not in controls and info not in readers]
    found += [_probe(info) for info in readers]
    found += [finding for info in drivers for finding in examine(info)]
    found += [finding for info in controls for finding in doctor.examine(info, inventory)]
    if inventory is not None:
        lacking = not_installed(inventory).items() if name is None else ()
        found += [DoctorFinding(driver, ok=False, text=text, advice=advice) for driver, (text, advice) in lacking]
        found += _used(cx, inventory, {info.name for info in drivers})
    elif name is None and cx.out.format is not OutputFormat.NAME:
        cx.out.narrate("no inventory: which devices use these drivers is not known")
    _print(cx, sorted(found, key=lambda finding: finding.driver))
    return ExitCode.DONE if all(finding.ok for finding in found) else ExitCode.UNHEALTHY


def _ssh() -> list[DoctorFinding]:
    """A finding if hosts are read over paramiko's public API alone."""
    from lumctl.fleet.ssh.connect import PLAIN_VARIABLE, plain_reason

    reason = plain_reason()
    if reason is None:
        return []
    chosen = PLAIN_VARIABLE in reason
    advice = f"unset {PLAIN_VARIABLE}" if chosen else "pip install 'paramiko>=5,<6'"
    text = f"hosts are read over paramiko's public API alone, which is slower: {reason}"
    return [DoctorFinding("ssh", ok=True, text=text, advice=advice, state="degraded")]


def _wanted(inventory: "Inventory") -> set[str]:
    """The names of the plug-ins that an inventory uses."""
    jobs = {job.hook.kind for job in inventory.jobs.values() if job.hook is not None}
    return {*users_of_drivers(inventory), *jobs, *(host.probe for host in inventory.hosts.values())}


def _probe(info: DriverInfo) -> DoctorFinding:
    """Whether a probe loads and its rules are right."""
    from lumctl.fleet.probe_plugins import load
    from lumctl.health.probe_rules import read_rules

    try:
        probe = load(info.name)
        rules = read_rules(probe)
    except UsageError as error:
        return DoctorFinding(info.name, ok=False, text=error.message, advice=error.hint or "")
    tools = ", ".join(command.run for command in probe.commands)
    return DoctorFinding(
        info.name, ok=True, text=f"a probe with {len(rules)} cases of rules, reads {tools}; {probe.proven}"
    )


def _not_used(name: str, inventory: "Inventory") -> DoctorFinding:
    text = f"not used by {inventory.path}; not checked"
    return DoctorFinding(name, ok=True, text=text, advice=f"lumctl plugin doctor {name}", state="disabled")


def _named(name: str | None, drivers: tuple[DriverInfo, ...]) -> list[DriverInfo]:
    if name is None:
        return list(drivers)
    found = [info for info in drivers if info.name == name]
    if not found:
        near = nearest(name, [info.name for info in drivers])
        names = ", ".join(sorted({info.name for info in drivers})) or "none"
        raise UsageError(
            f"no driver, kind of job control or probe {name!r} is installed",
            hint=(f"did you mean {near}? " if near else "") + f"installed: {names}",
        )
    return found


def _inventory(cx: Invocation) -> "Inventory | None":
    """The inventory, if there is one; one that was named must be right."""
    if cx.inventory_path or os.environ.get("LUMCTL_INVENTORY"):
        return cx.inventory
    from lumctl.inventory.load import find_inventory

    try:
        find_inventory(None)
    except UsageError:
        return None
    return cx.inventory


def _used(cx: Invocation, inventory: "Inventory", drivers: set[str]) -> list[DoctorFinding]:
    """Whether the devices that use these drivers answer on the target."""
    from lumctl.context import Context
    from lumctl.context.roll_call import call
    from lumctl.inventory.components import Component, Part

    def concerned(component: Component) -> bool:
        return component.part is Part.DEVICE or inventory.devices[str(component.device)].driver in drivers

    users = {driver: names for driver, names in users_of_drivers(inventory).items() if driver in drivers}
    if not users:
        return []
    try:
        with Context(inventory, cx.target) as context:
            answers = call(context, concerned)
    except LumctlError as error:
        return [
            DoctorFinding(driver, ok=False, text=f"used by {few(names)}, which cannot be asked: {error.message}",
                    advice=error.hint or "")
            for driver, names in users.items()
        ]  # fmt: skip
    return [finding for driver, names in users.items() for finding in _answered(cx, driver, names, answers)]


def _answered(cx: Invocation, driver: str, names: list[str], answers: list["ComponentAnswer"]) -> list[DoctorFinding]:
    """The answers of the devices that use one driver."""
    asked = [answer for answer in answers if answer.id in names]
    silent = [answer for answer in asked if answer.problem]
    if not silent:
        told = f"; on target {cx.target} {'it answers' if len(names) == 1 else 'all answer'}" if asked else ""
        return [DoctorFinding(driver, ok=True, text=f"used by {few(names)}{told}")]
    return [
        DoctorFinding(
            driver,
            ok=False,
            text=f"used by {each.id}, on target {cx.target}: {each.problem}",
            advice=f"lumctl device show {each.id} --target {cx.target}",
        )
        for each in silent
    ]


def _print(cx: Invocation, found: list[DoctorFinding]) -> None:
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(sorted({finding.driver for finding in found if not finding.ok}))
        return
    # `well` is the older name of `ok`; scripts may read it.
    rows: list[dict[str, Any]] = [asdict(finding) | {"well": finding.ok, "state": finding.shown} for finding in found]
    if cx.out.structured:
        cx.out.document("plugin-doctor", {"target": str(cx.target), "findings": rows})
    else:
        cx.out.table(COLUMNS, rows)
