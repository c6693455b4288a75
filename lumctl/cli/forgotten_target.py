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
    from lumctl.context import Context
    from lumctl.devices.endpoints import simulator_runs

    of_rack = not isinstance(error, UsageError) and cx.target == "rack" and not cx.target_was_named
    with suppress(LumctlError):
        if of_rack and simulator_runs(cx.inventory):
            with Context(cx.inventory, cx.target) as context:
                if not any(context.store(rack).runs.all() for rack in cx.inventory.racks):
                    return "a simulator of this inventory runs: if that was meant, add --target sim"
    return ""
