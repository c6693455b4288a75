"""``lumctl device``: show and set the states of meshes, switches, transponders and machines' power."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.verbs import DryRunOption, YesOption, noun_app, verb
from lumctl.errors import ExitCode

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.context.device_report import Port, Report, ReportReading
    from lumctl.context.roll_call import ComponentAnswer

app = noun_app(NOUNS["device"].help)


LISTED = (
    OutputColumn("STATE", "state"),
    OutputColumn("DEVICE", "id"),
    OutputColumn("KIND", "kind", gives_way=1),
    OutputColumn("DRIVER", "driver", gives_way=2),
    OutputColumn("ADDRESS", "address"),
    OutputColumn("SAYS", "told"),
    OutputColumn("CAPABILITIES", "able", wide=True),
    OutputColumn("PROVEN ON", "proven", wide=True),
)
_PORTS = (
    OutputColumn("PORT", "port", right=True),
    OutputColumn("SIDE", "side"),
    OutputColumn("LANE", "lane"),
    OutputColumn("JOINED TO", "joined", right=True),
    OutputColumn("ENABLED", "enabled"),
    OutputColumn("FAILED", "failed"),
    OutputColumn("LABEL", "label", gives_way=1),
    OutputColumn("POWER dBm", "power", right=True),
)
_LIMITS = ("low_alarm", "low_warning", "high_warning", "high_alarm")
_READINGS = (
    OutputColumn("READING", "name"),
    OutputColumn("VALUE", "value", right=True),
    OutputColumn("UNIT", "unit"),
    *(OutputColumn(limit.replace("_", " ").upper(), limit, right=True) for limit in _LIMITS),
)
_ALARMS = (
    OutputColumn("SEVERITY", "severity"),
    OutputColumn("SOURCE", "source", gives_way=2),
    OutputColumn("SINCE", "since", gives_way=1),
    OutputColumn("ALARM", "text"),
)
_FINDINGS = (
    OutputColumn("STATE", "state"),
    OutputColumn("RULE", "rule", gives_way=1),
    OutputColumn("EVIDENCE", "evidence"),
    OutputColumn("ADVICE", "advice"),
)
_DIFFERENCES = (
    OutputColumn("COMPONENT", "component"),
    OutputColumn("RECORD", "record"),
    OutputColumn("DEVICE SHOWS", "device"),
)


@verb(app, "list")
def list_(cx: Invocation) -> int:
    """List devices, transponders of chassis and the power of hosts, and whether each answers.

    Exits 3 if one could not be reached, 4 if one differs from the inventory. With ``-o name`` no device is read.
    """
    from lumctl.inventory.components import managed

    if cx.out.format is OutputFormat.NAME:
        cx.out.names([each.id for each in managed(cx.inventory)])
        return ExitCode.DONE
    from lumctl.context import Context
    from lumctl.context.roll_call import call

    with Context(cx.inventory, cx.target) as context:
        answers = call(context)
    if cx.out.structured:
        cx.out.document("device", {"target": str(cx.target), "devices": [answer_document(each) for each in answers]})
    else:
        cx.out.table(LISTED, [_row(each) for each in answers])
        if not answers:
            cx.out.narrate(f"{cx.inventory.path} has no devices")
        elif all(each.unreachable for each in answers):
            tell_if_forgotten(cx)
    return _worst(answers)


@verb(app, "show", pages=True)
def show(
    cx: Invocation,
    component: Annotated[
        str,
        typer.Argument(
            metavar="COMPONENT", help="DEVICE, DEVICE/port/N, MESH/puc/N, a transponder, or HOST/power (or HOST)."
        ),
    ],
) -> int:
    """Show what a component reports: readings with units, ports, alarms, and the record compared with the read-back.

    The state of a mesh or a switch is judged from the alarms and the temperature that this command reads.

    Exits 3 if it could not be reached; the record is shown even then.
    """
    from lumctl.context import Context
    from lumctl.context.device_report import report

    with Context(cx.inventory, cx.target) as context:
        made = report(context, component)
    if cx.out.structured:
        cx.out.document("device", {"target": str(cx.target), "devices": [report_document(made)]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([made.component.id])
    else:
        _print(cx.out, made)
    return made.answer.exit_code


def answer_document(answer: "ComponentAnswer") -> dict[str, Any]:
    """One component's answer as data."""
    document = asdict(answer)
    # It only decides the exit code; a document says it by ``state`` and ``problem``.
    del document["unreachable"]
    return document | {"state": answer.state.value, "capabilities": list(answer.capabilities)}


def report_document(made: "Report") -> dict[str, Any]:
    """One component with all its readings, as data."""
    from lumctl.cli.views import finding_document

    return answer_document(made.answer) | {
        "readings": [asdict(each) | {"dark": each.dark} for each in made.readings],
        "alarms": [asdict(each) for each in made.alarms],
        "findings": [finding_document(each) for each in made.findings],
        "ports": [asdict(each) | {"dark": each.power_dbm == float("-inf")} for each in made.ports],
        "parts": [answer_document(each) for each in made.parts],
        "circuits": [{"id": each.id, "owner": each.owner} for each in made.circuits],
        "record": made.record,
        "read_back": made.read_back,
        "differences": [asdict(each) for each in made.differences],
        "notes": made.notes,
    }


def _worst(answers: Iterable["ComponentAnswer"]) -> int:
    """The exit code for several answers: unreachable, else unhealthy, else done."""
    codes = {answer.exit_code for answer in answers}
    return next((code for code in (ExitCode.UNREACHABLE, ExitCode.UNHEALTHY) if code in codes), ExitCode.DONE)


def _row(answer: "ComponentAnswer") -> dict[str, Any]:
    return {
        "state": answer.state.value,
        "id": answer.id,
        "kind": answer.kind,
        "driver": answer.driver,
        "address": answer.address,
        "told": answer.problem or answer.says,
        "able": ", ".join(answer.capabilities),
        "proven": answer.proven,
    }


def _print(out: Output, made: "Report") -> None:
    answer = made.answer
    facts = {
        "state": out.state(answer.state.value),
        "kind": answer.kind,
        "driver": answer.driver,
        "address": answer.address,
        "says": answer.problem or answer.says,
        "capabilities": ", ".join(answer.capabilities) or "none beyond the required ones",
        "proven on": answer.proven,
        "circuits": ", ".join(f"{each.id} of {each.owner}" for each in made.circuits),
        "record": _record(made),
    }
    out.text(made.component.id)
    for name, value in facts.items():
        if value:
            out.text(f"  {name + ':':<14}{value}")
    for note in made.notes:
        out.text(f"  {'note:':<14}{note}")
    _section(out, "readings", _some(_READINGS, readings := [_reading(each) for each in made.readings]), readings)
    rows = [asdict(each) | {"state": each.state.value} for each in made.findings]
    _section(out, "findings", _FINDINGS, rows)
    _section(out, "alarms", _ALARMS, [_alarm(each) for each in made.alarms])
    _section(out, "ports", _some(_PORTS, ports := [_port(each) for each in made.ports]), ports)
    _section(out, "parts", LISTED, [_row(each) for each in made.parts])
    _section(out, "the record and the device differ", _DIFFERENCES, [asdict(each) for each in made.differences])


def _record(made: "Report") -> str | None:
    """The recorded state, and whether the device's own state agrees with it."""
    if made.record is None or not made.certain:
        return made.record
    if made.differences:
        return f"{made.record}; the device differs in {len(made.differences)}"
    if made.read_back:
        return f"{made.record}; the device agrees"
    told = "it does not answer" if made.read_back is None else "it cannot be read back"
    return f"{told}: recorded as {made.record}"


def _section(out: Output, title: str, columns: Sequence[OutputColumn], rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        out.text()
        out.text(title)
        out.table(columns, rows)


def _some(columns: Sequence[OutputColumn], rows: Sequence[dict[str, Any]]) -> tuple[OutputColumn, ...]:
    """The columns that have a value in at least one row."""
    return tuple(column for column in columns if any(row.get(column.key) not in {None, ""} for row in rows))


def _reading(reading: "ReportReading") -> dict[str, Any]:
    limits = {limit: f"{value:.6g}" for limit, value in reading.limits.items()}
    return {"name": reading.name, "value": _value(reading.value), "unit": reading.unit, **limits}


def _value(value: Any) -> str | None:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value == float("-inf"):
        return "no light"
    return f"{value:.6g}" if isinstance(value, float) else None if value is None else str(value)


def _port(port: "Port") -> dict[str, Any]:
    power = port.power_dbm
    return {
        "port": port.port,
        "side": port.side if port.side != "both" else None,
        "lane": ", ".join(port.lanes),
        "joined": port.joined,
        "enabled": {True: "yes", False: "no", None: None}[port.enabled],
        "failed": "yes" if port.failed else None,
        "label": port.label,
        "power": None if power is None else "no light" if power == float("-inf") else f"{power:.2f}",
    }


def _alarm(alarm: Any) -> dict[str, Any]:
    from datetime import datetime

    since = None if alarm.since is None else datetime.fromtimestamp(alarm.since).astimezone()
    return asdict(alarm) | {"since": since and since.isoformat(timespec="seconds")}


@verb(app, "set")
def set_component(
    cx: Invocation,
    component: Annotated[str, typer.Argument(metavar="COMPONENT", help="As for device show.")],
    settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE", help="The settings to change, each once.")],
    even_if_used: Annotated[
        bool, typer.Option("--even-if-used", help="Do it even if a job loses light or a machine.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Change a setting of one component: planned, journalled and read back like any change, and undone if it fails.

    MESH/puc/N, a PUC (programmable unit cell), takes ``state=bar|cross``. SWITCH/port/N takes
    ``enabled=true|false``, ``label=TEXT`` and ``joined=PORT|none``. A transponder takes ``transmit=on|off``,
    ``frequency_mhz=MHZ`` and ``output_power_dbm=DBM``. HOST/power (or HOST) takes ``power=on|off|force-off|reset``.

    A device that lumctl never wrote can be set if it can be read: its present states become the record, and the plan
    lists each light path that it cuts. Otherwise run ``lumctl fabric apply`` first. On a switch without lanes of the
    inventory every port can be connected; on one with lanes, only the lanes' ports.

    Circuits of jobs are protected: cells that carry such a circuit are refused, and any other change that takes light
    or a machine from a job needs ``--even-if-used``. ``lumctl swap list`` shows the run; ``lumctl swap rollback RUN``
    undoes it, except a reset, which cannot be undone.
    """
    from lumctl.cli.changes import carry_out
    from lumctl.context import Context
    from lumctl.swap import plan_settings

    with Context(cx.inventory, cx.target) as context:
        plan = plan_settings(context, component, settings, even_if_used=even_if_used)
        if plan.steps:
            carry_out(cx, context, plan, yes=yes, dry_run=dry_run)
            if not dry_run:
                _warn_of_darkness(cx, context, component, settings)
            return
        if cx.out.structured:
            cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
        if cx.out.format is not OutputFormat.NAME:
            cx.out.narrate("; ".join(plan.warnings) or f"{component} already has {' '.join(settings)}")
            cx.out.narrate("nothing was done")
        _warn_of_darkness(cx, context, component, settings)


def _warn_of_darkness(cx: Invocation, context: "Context", component: str, settings: Sequence[str]) -> None:
    """Warn of a transmitter that was switched on and sends no light."""
    from lumctl.devices.errors import DeviceError
    from lumctl.devices.types import Capability
    from lumctl.health.rulebook import verdict

    if "transmit=on" not in settings or component not in cx.inventory.transponders:
        return
    with suppress(DeviceError):
        driver = context.devices.transponder(component)
        power = driver.read_optics().tx_power_dbm if Capability.READ_OPTICS in driver.capabilities else None
        if power is not None and power < verdict("link.tx-power", "dark").limit:
            cx.out.narrate(f"warning: {component} is on, but sends no light ({power:.1f} dBm): replace its module")
