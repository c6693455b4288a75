"""``lumctl plugin doctor``: whether installed plug-ins are valid, and whether the devices that use them answer."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.devices.doctor import DoctorFinding, examine, lacking, pip
from lumctl.devices.drivers import DriverInfo, few, installed, not_installed, users_of_drivers
from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.health.states import State
from lumctl.inventory.problems import nearest
from lumctl.offers import JOB_KINDS, PROBES, Offer, offered

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
    verb(app, "doctor", pages=True)(command)


def command(
    cx: Invocation,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One plug-in; by default all.")] = None,
) -> int:
    """Check each driver: whether it loads, what it declares, what it was tested on, what it imports.

    Also checks each kind of job control. With an inventory, it checks the plug-ins that the inventory uses and whether
    their devices answer on the target, and lists the others as not used. Without one, it checks all installed plug-ins.
    If a package is missing, the advice is the command that installs it. Exits 4 if a check fails.
    """
    kinds, probes = offered(JOB_KINDS), offered(PROBES)
    named, inventory = _named(name, (*installed(), *kinds, *probes)), _inventory(cx)
    found: list[DoctorFinding] = []
    # A plug-in that was named is checked even if the inventory does not use it.
    if inventory is not None and name is None:
        idle = [info for info in named if info.name not in _wanted(inventory)]
        named = [info for info in named if info not in idle]
        found += [_not_used(info.name, inventory) for info in idle]
    found += _ssh() if name is None else []
    found += _store(inventory) if name is None and inventory is not None else []
    controls = [info for info in named if info in kinds]
    readers = [info for info in named if info in probes]
    drivers = [info for info in named if info not in controls and info not in readers]
    found += [_probe(info) for info in readers]
    found += [finding for info in drivers for finding in examine(info)]
    found += [finding for info in controls for finding in _control(info, inventory)]
    if inventory is not None:
        missing = not_installed(inventory).items() if name is None else ()
        found += [DoctorFinding(driver, ok=False, text=text, advice=advice) for driver, (text, advice) in missing]
        found += _used(cx, inventory, {info.name for info in drivers})
    elif name is None and cx.out.format is not OutputFormat.NAME:
        cx.out.narrate("no inventory: which devices use these drivers is unknown")
    _print(cx, sorted(found, key=lambda finding: finding.driver))
    return ExitCode.DONE if all(finding.ok for finding in found) else ExitCode.UNHEALTHY


def _ssh() -> list[DoctorFinding]:
    """A finding if hosts are read with paramiko's public API only, which is slower."""
    from lumctl.fleet.ssh.connect import PLAIN_VARIABLE, plain_reason

    reason = plain_reason()
    if reason is None:
        return []
    chosen = PLAIN_VARIABLE in reason
    advice = f"unset {PLAIN_VARIABLE}" if chosen else "pip install 'paramiko>=5,<6'"
    text = f"hosts are read only over paramiko's public API, which is slower: {reason}"
    return [DoctorFinding("ssh", ok=True, text=text, advice=advice, state="degraded")]


def _store(inventory: "Inventory") -> list[DoctorFinding]:
    """A finding if a store of the inventory needs a package that is not installed."""
    from lumctl.store import place_of

    places = {rack: place_of(inventory, rack, "rack") for rack in inventory.racks}
    remote = [rack for rack, place in places.items() if place.startswith("postgresql")]
    if not remote or find_spec("psycopg") is not None:
        return []
    text = f"the store of {few(remote)} is a PostgreSQL database, but psycopg is not installed"
    return [DoctorFinding("store", ok=False, text=text, advice=pip("lumctl[postgres]"))]


def _wanted(inventory: "Inventory") -> set[str]:
    """The names of the plug-ins that an inventory uses."""
    jobs = {job.hook.kind for job in inventory.controlled.values() if job.hook is not None}
    return {*users_of_drivers(inventory), *jobs, *(host.probe for host in inventory.hosts.values())}


def _probe(info: DriverInfo) -> DoctorFinding:
    """Whether a probe loads and its rules are valid."""
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


def _control(offer: Offer, inventory: "Inventory | None") -> Iterator[DoctorFinding]:
    """Whether a kind of job control loads, what it lacks, and whether the inventory's jobs can use it."""
    from lumctl.inventory.job_kinds import API
    from lumctl.jobs.control import load

    try:
        load(offer.name)
    except UsageError as error:
        yield DoctorFinding(offer.name, ok=False, text=error.message, advice=error.hint or "")
        yield from lacking(offer)
        return
    yield DoctorFinding(offer.name, ok=True, text=f"a kind of job control, API {API.version}")
    yield from lacking(offer)
    if inventory is not None:
        yield from _jobs_of(offer.name, inventory)


def _jobs_of(name: str, inventory: "Inventory") -> Iterator[DoctorFinding]:
    """Whether the programs of the jobs of one kind are found."""
    from lumctl.jobs.control import programs_of

    for job in inventory.controlled.values():
        if job.hook is None or job.hook.kind != name:
            continue
        try:
            programs = programs_of(job.hook)
        except UsageError as error:
            yield DoctorFinding(
                name, ok=False, text=f"used by job {job.name}: {error.message}", advice=error.hint or ""
            )
            continue
        absent = sorted({argv[0] for argv in programs.values() if shutil.which(argv[0]) is None})
        if absent:
            text = f"used by job {job.name}, but {', '.join(absent)} cannot be run here"
            yield DoctorFinding(
                name, ok=False, text=text, advice="install it, or see `hook` of the job in the inventory"
            )
        else:
            yield DoctorFinding(name, ok=True, text=f"used by job {job.name}")


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
    """The inventory, or ``None`` if there is none.

    Raises:
        UsageError: an inventory was given or found, but it cannot be read or has errors.
    """
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
            DoctorFinding(driver, ok=False, text=f"used by {few(names)}, which cannot be reached: {error.message}",
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
        return
    cx.out.table(COLUMNS, [row for row in rows if row["state"] != State.DISABLED])
    if idle := [row["driver"] for row in rows if row["state"] == State.DISABLED]:
        cx.out.narrate(f"not used by the inventory, and not checked: {', '.join(idle)}")
        cx.out.narrate(f"to check one: lumctl plugin doctor {idle[0]}")
