"""``lumctl health clear``: an operator ends error events that lumctl could not see end."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.components import circuits, rack_of_named
from lumctl.cli.health_rules import require_rule
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import kept_text, verb
from lumctl.errors import RefusedError, UsageError
from lumctl.time_text import iso_text

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.health.states import Finding


def register(app: typer.Typer) -> None:
    """Add ``clear`` to the commands of ``health``."""
    verb(app, "clear")(clear)


def clear(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="The accelerator or host whose error events are cleared.")
    ],
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="Only events of this rule; all of them by default.")
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", callback=kept_text, help="What was done; stored with your name."),
    ] = None,
) -> None:
    """End the error events of a component that was reset or repaired while lumctl did not see it.

    Error events are lines of the kernel log (XIDs, SXids, and those that a probe plug-in reads), and how often an
    accelerator was lost or failed and came back (the rule gpu.unsteady).
    Such an event counts until the GPU is seen to be reset or the host is rebooted, even after its line has left the
    kernel log. This command ends those that lumctl has seen so far; later ones count again.
    """
    from lumctl.change.origin import origin
    from lumctl.context import Context
    from lumctl.health.acknowledgements import EventClear

    if rule is not None:
        require_rule(rule)
    if not (reason or "").strip():
        raise UsageError("clearing events needs a reason", hint='add --reason "..."')
    with Context(cx.inventory, cx.target) as context:
        rack = rack_of_named(cx.inventory, component, circuits(context))
        # The observation is stored, because a clear ends only events of stored observations.
        seen = context.observe(remember=True)
        found = [finding for finding in _from_events(seen, component) if rule in {None, finding.rule}]
        if not found:
            raise _nothing_to_clear(seen, component, rule)
        said = EventClear(component, rule, origin(), str(reason).strip(), context.now())
        context.store(rack).health.clear_events(said)
    if cx.out.structured:
        document: dict[str, Any] = {"component": component, "rule": rule, "by": said.by, "reason": said.reason}
        cleared = [{"rule": finding.rule, "evidence": finding.evidence} for finding in found]
        about = {"target": str(cx.target), **document, "at": iso_text(said.at), "rack": rack, "cleared": cleared}
        cx.out.document("events-cleared", about)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([component])
    else:
        for finding in found:
            cx.out.text(f"{component}: cleared {finding.rule}: {finding.evidence}")


def _from_events(seen: "Observation", component: str) -> "list[Finding]":
    """The faults of a component that are active because of recorded events."""
    from lumctl.health.event_record import is_clearable
    from lumctl.health.identity import gpu_readings
    from lumctl.health.states import State

    inventory = seen.inventory
    accelerator = inventory.accelerators.get(component)
    host = seen.snapshot.hosts.get(accelerator.host if accelerator else component)
    if host is None:
        return []
    reading = gpu_readings(inventory, seen.snapshot).get(component)
    # If nvidia-smi itself asks for the action now, clearing log events does not end the finding.
    says_now = reading is not None and (reading.recovery_action or reading.reset_required or reading.says_reset)
    return [
        finding
        for finding in seen.report.findings()
        if finding.component == component
        and is_clearable(finding.rule)
        and finding.state is not State.OK
        and not (finding.rule == "gpu.recovery-action" and says_now)
    ]


def _nothing_to_clear(seen: "Observation", component: str, rule: str | None) -> RefusedError:
    """The error for a component without events to clear; its hint is a command that helps further."""
    others = [finding for finding in _from_events(seen, component) if finding.rule != rule]
    if others:
        named = ", ".join(dict.fromkeys(finding.rule for finding in others))
        hint = f"{named} has error events: lumctl health clear {component} --reason TEXT"
        return RefusedError(f"{rule} has no events of {component}", hint=hint)
    inventory = seen.inventory
    accelerators = [a.id for a in inventory.accelerators_of(component) if _from_events(seen, a.id)]
    if component in inventory.hosts and accelerators:
        hint = f"its accelerators have error events: lumctl health clear {accelerators[0]} --reason TEXT"
    elif component in inventory.accelerators and _from_events(seen, host := inventory.accelerators[component].host):
        hint = f"its host has error events: lumctl health clear {host} --reason TEXT"
    else:
        what = "only error events of the kernel log and of gpu.unsteady can be cleared"
        hint = f"{what}; see its findings: lumctl health explain {component}"
        if component in inventory.racks:
            hint = "name an accelerator or a host; see: lumctl status"
    return RefusedError(f"{component} has no error events: there is nothing to clear", hint=hint)
