"""The hint for an operator who started the simulator and then forgot to name it as the target."""

from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation

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
