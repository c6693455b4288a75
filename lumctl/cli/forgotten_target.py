"""The hint for an operator who started the simulator and then forgot to name it as the target."""

from contextlib import suppress
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError, UsageError

if TYPE_CHECKING:
    from lumctl.health.states import HealthReport


def forgotten_target(cx: Invocation, report: "HealthReport") -> str:
    """Say that the target was forgotten after ``lumctl sim up``, if it was: then no such rack exists. Else empty."""
    from lumctl.devices.endpoints import simulator_runs

    hosts = report.hosts.values()
    silent = bool(hosts) and all(any(found.rule == "host.unreachable" for found in host.findings) for host in hosts)
    if cx.target_was_named or not silent or not simulator_runs(cx.inventory):
        return ""
    return "no host answers, but a simulator of this inventory runs; to use it, add --target sim to each command"


def simulator_meant(cx: Invocation, error: LumctlError) -> str:
    """A hint beside a refusal on a rack that was never changed while its simulator runs: maybe that was meant."""
    return "" if isinstance(error, UsageError) else simulator_hint(cx)


def tell_if_forgotten(cx: Invocation, report: "HealthReport | None" = None) -> None:
    """Say that the target may have been forgotten: beside what was read, or without a report beside an empty list."""
    if said := simulator_hint(cx) if report is None else forgotten_target(cx, report):
        cx.out.narrate(said)


def simulator_hint(cx: Invocation) -> str:
    """The hint that the simulator may be meant; empty if it does not run, or the rack was ever changed."""
    from lumctl.context import Context
    from lumctl.devices.endpoints import simulator_runs

    of_rack = cx.target == "rack" and not cx.target_was_named
    with suppress(LumctlError):
        if of_rack and simulator_runs(cx.inventory):
            with Context(cx.inventory, cx.target) as context:
                if not any(context.store(rack).runs.all() for rack in cx.inventory.racks):
                    return "a simulator of this inventory runs: if that was meant, add --target sim"
    return ""
