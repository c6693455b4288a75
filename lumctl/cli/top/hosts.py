"""What the dashboard asks of one host: its probes, a shell on it, and the jobs that its scheduler has there."""

from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lumctl.context import Context
    from lumctl.fleet.bundle.host_answers import HostAnswer
    from lumctl.jobs.control import ScheduledJob
    from lumctl.tui.views.sections import Fact


def host_output(cx: Invocation, host: str) -> "Iterator[HostAnswer]":
    """Run the probes of a host one after the other, the kernel log first.

    Raises:
        UnreachableError: the host cannot be reached.
    """
    import time

    from lumctl.cli.fleet import shell_probes
    from lumctl.context import Context
    from lumctl.fleet.bundle.host_answers import FIRST_PROBE, Clocks, host_answers

    # A context of its own: the one that is observed belongs to the thread that reads.
    with Context(cx.inventory, cx.target) as context:
        first = context.fleet.collect([host], [FIRST_PROBE]).hosts[host]
        if not first.reachable:
            raise UnreachableError(first.error or f"{host} is not reachable")
        probes = sorted(shell_probes(context, host), key=lambda probe: probe.name != "kernel")
        yield from host_answers(context.fleet, first, probes, Clocks(context.now, time.monotonic))


def shell_command(cx: Invocation, host: str) -> tuple[str, ...]:
    """The words of the ssh command that opens a shell on a host.

    Raises:
        RefusedError: it is a simulated host, which has no shell.
        UsageError: the SSH client configuration cannot be read.
    """
    from lumctl.devices.endpoints import rack_endpoints
    from lumctl.fleet.ssh.routes import Routes, ssh_command

    if cx.target == "sim":
        raise RefusedError(f"{host} is simulated and has no shell", hint="read its kernel log and its probes instead")
    return ssh_command(Routes().of(rack_endpoints(cx.inventory).hosts[host]))


def scheduled(cx: Invocation, component: str) -> "tuple[Fact, ...]":
    """The scheduler's jobs as labels and texts; empty if no job of the inventory has one.

    A scheduler that does not answer is in the result as unknown.
    """
    if not any(job.hook is not None for job in cx.inventory.jobs.values()):
        return ()
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        try:
            return tuple(dict.fromkeys(_facts(context, component)))
        except LumctlError as error:  # the stores do not tell who runs there
            return (("scheduler", f"unknown: {error.message}"),)


def _facts(context: "Context", component: str) -> "Iterator[Fact]":
    accelerator = context.inventory.accelerators.get(component)
    host = accelerator.host if accelerator is not None else component
    if host not in context.inventory.hosts:
        return
    own = {job for job, placed in context.assignment(sound=False).items() if component in placed}
    told_of_host = False
    for name, job in context.inventory.jobs.items():
        if job.hook is None:
            continue
        if name in own:
            yield from _asked(context, name, None)
        # A scheduler knows all jobs on the host: the first answer is enough.
        if not told_of_host:
            facts = list(_asked(context, name, host))
            told_of_host = bool(facts)
            yield from facts


def _asked(context: "Context", job: str, host: str | None) -> "Iterator[Fact]":
    """The jobs of the scheduler behind a job's control; empty if it has no scheduler, or must not be called."""
    from lumctl.jobs import Hooks, passed_over

    if passed_over(context, job):
        return
    label = f"job {job}" if host is None else f"on {host}"
    try:
        found = Hooks(context, job, only_asks=True).scheduled(host)
    except LumctlError as error:
        yield label, f"unknown: {error.message}"
        return
    if found is not None and not found:
        yield label, "no job"
    for each in found or ():
        yield label, _words(each)


def _words(job: "ScheduledJob") -> str:
    name = f" ({job.name})" if job.name else ""
    return f"{job.id}{name} of {job.user or 'unknown'}, {job.state or 'unknown'}, for {job.elapsed or 'unknown'}"
