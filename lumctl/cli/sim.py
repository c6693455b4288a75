"""``lumctl sim``: simulate a rack of the inventory on loopback; ``--target`` does not affect these commands."""

import shlex
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.progress import progress
from lumctl.cli.verbs import VerbGroup, aimed, noun_app, verb
from lumctl.errors import UsageError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.problems import nearest
from lumctl.printable import is_or_are
from lumctl.time_text import iso_text, iso_times

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory

KINDS = (
    "gpu-lost, process-died, ecc, row-remap-failed, throttled (accelerators); overheat (accelerators, meshes, "
    "switches); link-down, link-flap (transponders); nic-lost (HOST/nic); dark, dim (transponders, "
    "TRANSPONDER/fibre, TRANSPONDER/converter, ports); dark (TRANSPONDER/rx); stuck-bar, stuck-cross (PUCs: "
    "programmable unit cells); "
    "slow-host, hung-smi, unreachable (hosts); device-down, device-lying, device-refuse, device-half, device-slow, "
    "device-cut (meshes, switches, chassis, power controllers); alarm (meshes, switches: a power supply has failed); "
    "slow-commit (meshes, switches); "
    "mesh-down, mesh-lying (meshes: older names of device-down and device-lying)."
)


class SimVerbs(VerbGroup):
    """The verbs of the simulator."""

    instead: ClassVar[Mapping[str, str]] = {
        "faults": "list the faults in force: lumctl sim status; clear all of them: lumctl sim clear --all",
    }


app = noun_app("A rack of any inventory on loopback, with faults on request.", SimVerbs)


@verb(app, "up")
def up(
    cx: Invocation,
    detach: Annotated[bool, typer.Option("--detach", help="Leave the simulator running in the background.")] = False,
    delay_ms: Annotated[
        float,
        typer.Option("--delay-ms", min=0, metavar="N", help="Time that a change of a mesh takes; by default none."),
    ] = 0.0,
    change_ms: Annotated[
        list[str] | None,
        typer.Option(
            "--change-ms",
            metavar="[DEVICE=]N",
            help=(
                "Time that a change of each mesh and switch takes, or of one device; settle instead of N: the device's "
                "settle_ms of the inventory. May be repeated; overrides --delay-ms."
            ),
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the noise in readings.")] = 0,
    lane_mbps: Annotated[
        float | None,
        typer.Option(
            "--lane-mbps",
            min=0.1,
            max=1e6,
            metavar="N",
            help=(
                "Limit of what a lane of a job on simulated hosts carries in each direction, in Mbit/s; by default "
                "none."
            ),
        ),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Leave every mesh in bar: program no circuits.")] = False,
) -> None:
    """Start the simulator and program the circuits of the inventory's jobs; without --detach it runs until Ctrl-C.

    Each mesh or switch speaks its driver's protocol: lumctl serves it, or the twin that the driver's package ships
    (see lumctl-driver(7)). If there is no twin, a generic mesh or switch replaces it, and a message names the device.

    While a device changes, the light paths that it changes are dark; it answers when its light has settled. Lanes carry
    no bytes over dark paths, and lose none: what was not delivered waits, as if its sender sent it again and again.

    If a twin or its driver fails, only its own device is affected: a message names the plug-in, the device and the
    call, the device is not programmed, and all other circuits are programmed. The simulator runs on, and the exit code
    is 3.
    """
    from lumctl.errors import UnreachableError
    from lumctl.sim.launch import launch

    inventory = cx.inventory
    changes = _change_times(inventory, change_ms or [])
    with progress("the simulator is starting", quiet=cx.out.quiet):
        simulator = launch(
            inventory, delay_ms=delay_ms, change_ms=changes, seed=seed, lane_mbps=lane_mbps, tied=not detach
        )
    try:
        for remark in simulator.remarks():
            cx.out.narrate(remark)
        missing = [device.id for device in inventory.light_devices if device.id in simulator.unserved()]
        if not dark:
            missing += _commission(cx, missing)
        # From here on, Ctrl-C is the regular way to end a simulator in the foreground.
        with nullcontext() if detach else suppress(KeyboardInterrupt):
            cx.out.narrate(
                f"the simulator of {inventory.path} runs (pid {simulator.process.pid}); look at it: "
                "lumctl status --target sim"
            )
            if cx.out.structured:
                cx.out.document("sim", _status(cx))
            if not detach:
                simulator.wait()
    # Also Ctrl-C while the circuits are programmed: no simulator may be left behind.
    except BaseException:
        simulator.stop()
        raise
    if detach:
        simulator.leave()
    else:
        simulator.stop()
        cx.out.narrate(f"the simulator of {inventory.path} has ended")
    if missing:
        raise UnreachableError(
            f"the simulator started without {', '.join(missing)}",
            hint=f"test the driver on its simulated device: lumctl plugin check {inventory.devices[missing[0]].driver}",
        )


@verb(app, "down")
def down(cx: Invocation) -> None:
    """End the simulator with all that its hosts and devices hold; plans and runs stay in the store of target sim."""
    from lumctl.sim import client, runtime

    control = _control(cx)
    pid = runtime.running_pid(control.parent)
    if pid is None:
        # One that was killed leaves its files behind.
        runtime.clean(control.parent)
        cx.out.narrate(f"no simulator of {cx.inventory.path} is running")
        return
    client.ask(control, "down")
    cx.out.narrate(f"the simulator of {cx.inventory.path} has ended (pid {pid})")


@verb(app, "status", pages=True)
def status(cx: Invocation) -> None:
    """Show whether the simulator runs, the addresses of its hosts and devices, and the present faults."""
    found = _status(cx)
    if cx.out.structured:
        cx.out.document("sim", found)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["id"] for row in found["hosts"] + found["devices"]])
    elif not found["running"]:
        cx.out.text(f"no simulator of {cx.inventory.path} is running")
    else:
        cx.out.narrate(f"the simulator of {cx.inventory.path} runs (pid {found['pid']})")
        if words := _lanes_in_words(found["lanes"]):
            cx.out.narrate(words)
        cx.out.table(
            [OutputColumn("COMPONENT", "id"), OutputColumn("ADDRESS", "address"), OutputColumn("FAULTS", "faults")],
            _rows(found),
        )


@verb(app, "fault")
def fault(
    cx: Invocation,
    component: Annotated[
        str,
        typer.Argument(metavar="COMPONENT", help="An inventory id, or a part of a component: MESH/puc/17."),
    ],
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KINDS, show_default=False)] = "",
    value: Annotated[
        float | None,
        typer.Option(
            "--value",
            metavar="V",
            help="The size of the fault, in C, dB or s; for an alarm, 1 (critical) to 4 (warning).",
        ),
    ] = None,
) -> None:
    """Make a component faulty.

    ``down``: the device accepts no connection. ``lying``: it confirms every change but makes none. ``refuse``: it
    refuses every change. ``half``: it makes half of a change and then refuses. ``slow``: it acts at once and answers V
    seconds late. ``cut``: it acts, but interrupts every answer in the middle. ``slow-commit``: it answers when half of
    a change is made and makes the rest V seconds later; ``sim clear`` completes it at once.

    ``process-died``: no process uses the accelerator any more, so its utilisation and memory fall. An idle accelerator
    is no fault: ``status`` shows no finding.

    A mesh or a switch with an alarm reports a failed power supply and keeps carrying light. lumctl sees an alarm or
    overheat only if the device's driver reads it: sim-mesh and sim-switch read both.

    The parts of a lane are TRANSPONDER/rx (its receiver), TRANSPONDER/converter (the media converter between NIC and
    fabric, if the lane has one) and TRANSPONDER/fibre. Converter and fibre carry both directions, and the module in the
    NIC does not see that they are dark. HOST/nic is the card with all interfaces to the fabric.
    """
    if not kind:
        raise UsageError(f"no kind of fault is given for {component}", hint=f"the kinds are: {KINDS}")
    injected = _ask(cx, "fault", component=component, kind=kind, value=value)["fault"]
    if cx.out.structured:
        cx.out.document("sim-fault", injected)
    cx.out.narrate(f"{component}: {_words(injected)}")


@verb(app, "clear")
def clear(
    cx: Invocation,
    component: Annotated[
        str | None, typer.Argument(metavar="COMPONENT", help="The component to clear; by default all.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Clear all faults, as without COMPONENT.")] = False,
) -> None:
    """Clear the faults of a component, or all faults; ``sim status`` lists them."""
    if every and component is not None:
        raise UsageError(
            f"--all clears the faults of every component, not only of {component}",
            hint=f"lumctl sim clear {shlex.quote(component)} or lumctl sim clear --all",
        )
    cleared = _ask(cx, "clear", component=component)["cleared"]
    if cx.out.structured:
        cx.out.document("sim-clear", {"cleared": cleared})
    for healed in cleared:
        cx.out.narrate(f"{healed['component']}: {healed['kind']} is cleared")
    if not cleared:
        cx.out.narrate(f"there is no fault to clear{f' on {component}' if component else ''}")


@verb(app, "resume")
def resume(cx: Invocation, job: Annotated[str, typer.Argument(metavar="JOB", help="A job or a slice.")]) -> None:
    """Run a job on the accelerators on which its ranks are placed now, as an operator resumes it on a rack.

    The simulated load of a job stays where it is until then: lumctl runs no hooks on a simulator, except those with
    ``on_sim: true``. A process that died (``process-died``) is started again. A warning names accelerators that have
    failed: their ranks do no work.
    """
    from lumctl.cli.job_state import find_job
    from lumctl.context import Context
    from lumctl.health.states import State

    with Context(cx.inventory, "sim") as context:
        placed = context.assignment()
        find_job(context.inventory, job)
        accelerators = list(placed.get(job, ()))
        report = context.observe().report.accelerators
    failed = [name for name in accelerators if report[name].state is State.FAILED]
    _ask(cx, "resume", job=job, accelerators=accelerators)
    if cx.out.structured:
        cx.out.document("sim-resume", {"job": job, "accelerators": accelerators})
    cx.out.narrate(f"{job} runs on {', '.join(fold(accelerators))}")
    if failed:
        what = f"{', '.join(fold(failed))} {is_or_are(len(failed))} failed: no rank works there"
        cx.out.narrate(aimed(cx, f"warning: {what}; see what to do: lumctl status --target sim"))


_SETTLE = "settle"


def _change_times(inventory: "Inventory", words: Iterable[str]) -> dict[str, float]:
    """The time of a change in ms, by mesh or switch; a word for one device overrides those for all."""
    known = {device.id: device for device in inventory.light_devices}
    every: dict[str, float] = {}
    one: dict[str, float] = {}
    for word in words:
        device, named, text = word.rpartition("=")
        if named and device not in known:
            near = nearest(device, known)
            raise UsageError(
                f"--change-ms {word}: the inventory has no mesh or switch {device!r}",
                hint=f"did you mean {near}?" if near else "list them: lumctl inventory show",
            )
        meant = [known[device]] if named else known.values()
        times = {each.id: each.settle_ms if text == _SETTLE else _ms(text, word) for each in meant}
        (one if named else every).update(times)
    return every | one


def _ms(text: str, word: str) -> float:
    try:
        ms = float(text)
    except ValueError:
        ms = -1.0
    if not 0 <= ms <= _MOST_MS:
        raise UsageError(
            f"--change-ms {word}: {text!r} is not a time in ms between 0 and {_MOST_MS:.0f}, and not {_SETTLE!r}",
            hint="examples: --change-ms 10, --change-ms rail0=25, --change-ms settle",
        )
    return ms


_MOST_MS = 600_000.0
"""The longest time that the inventory allows as ``settle_ms``."""


def _commission(cx: Invocation, without: Collection[str]) -> list[str]:
    """Program the jobs' circuits with the change engine, as on a real rack; return the devices that failed."""
    from lumctl.context import Context
    from lumctl.swap import commission

    failed: list[str] = []

    def report(device: str, why: str) -> None:
        failed.append(device)
        cx.out.narrate(f"{device} is not programmed: {why}")

    with (
        progress("the circuits are programmed and proved", quiet=cx.out.quiet) as tell,
        Context(cx.inventory, "sim") as context,
    ):
        commission(context, progress=tell, without=without, failed=report)
    return failed


def _control(cx: Invocation) -> Path:
    from lumctl.devices.endpoints import sim_runtime_folder
    from lumctl.sim.runtime import CONTROL_SOCKET

    return sim_runtime_folder(cx.inventory.path) / CONTROL_SOCKET


def _ask(cx: Invocation, do: str, **arguments: Any) -> dict[str, Any]:
    from lumctl.devices.endpoints import no_simulator
    from lumctl.sim import client, runtime

    control = _control(cx)
    if runtime.running_pid(control.parent) is None:
        raise no_simulator(cx.inventory.path)
    return client.ask(control, do, **arguments)


def _status(cx: Invocation) -> dict[str, Any]:
    from lumctl.errors import UnreachableError

    try:
        told = _ask(cx, "status")
    except UnreachableError:
        nothing: dict[str, Any] = {"hosts": [], "devices": [], "faults": [], "lanes": None}
        return {"running": False, "pid": None, "inventory": str(cx.inventory.path), "started_at": None, **nothing}
    runtime = told["runtime"]
    return {
        "running": True,
        "pid": runtime["pid"],
        "inventory": runtime["inventory"],
        "started_at": iso_text(runtime["started_at"]),
        "hosts": [{"id": name, "address": f"{at['address']}:{at['port']}"} for name, at in runtime["hosts"].items()],
        "devices": [
            {
                "id": device,
                "address": address,
                "served": device not in told["unserved"],
                "stand_in": runtime["stand_ins"].get(device),
            }
            for device, address in runtime["devices"].items()
        ],
        "faults": iso_times(told["faults"], "since"),
        "lanes": told["lanes"],
    }


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each host and device with its faults, then one for each other faulty component."""
    faults: dict[str, list[str]] = {}
    for each in found["faults"]:
        faults.setdefault(each["component"], []).append(_words(each))
    served = [{**row, "faults": ", ".join(faults.pop(row["id"], []))} for row in [*found["hosts"], *found["devices"]]]
    return served + [{"id": component, "faults": ", ".join(words)} for component, words in faults.items()]


def _lanes_in_words(lanes: dict[str, Any]) -> str:
    """The traffic of the lanes as text; empty if the lanes were never used."""
    if not (lanes["connections"] or lanes["bytes"]):
        return ""
    dark = f" ({lanes['dark']} dark)" if lanes["dark"] else ""
    return f"its lanes carry {lanes['connections']} connections{dark}; they transferred {lanes['bytes'] / 1e6:.1f} MB"


def _words(fault: dict[str, Any]) -> str:
    kind = str(fault["kind"])
    return kind if fault["value"] is None else f"{kind} ({fault['value']:g})"
