"""What a single setting takes from the jobs: circuits that it darkens or detunes, ranks whose machine it stops.

A ``Do.SET`` step names, under ``disturbs``, what somebody has said may be disturbed; nothing else is.
"""

import shlex
from dataclasses import dataclass

from lumctl.change.plan import Do, Plan
from lumctl.change.settings import settable
from lumctl.change.values import Value
from lumctl.errors import RefusedError
from lumctl.inventory.components import Component, Part
from lumctl.inventory.wiring import Circuit, circuits_of, jobs_in
from lumctl.site import Site


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A circuit or a job that a setting disturbs: its name, and in words how the component serves it."""

    name: str
    how: str


def disturbed(site: Site, component: Component, name: str, value: Value) -> tuple[Disturbed, ...]:
    """What a job loses, where it runs now, if a component is set to this value."""
    placed = site.assignment(sound=False)
    circuits = circuits_of(site.inventory, placed)
    if component.part is Part.POWER:
        return () if value == "on" else _of_machine(site, component, placed, circuits)
    if name == "label" or value is True:
        return ()
    carried = [c for c in circuits if _runs_through(c, component)]
    return tuple(Disturbed(c.id, f"{component.id} carries circuit {c.id} of {c.owner}") for c in carried)


def require_undisturbed(site: Site, plan: Plan) -> None:
    """Refuse a plan whose settings would disturb a job that they do not name.

    Raises:
        RefusedError: it would; what is disturbed is named.
    """
    for step in plan.steps:
        if step.do is not Do.SET:
            continue
        name, after = step.data["setting"], step.data["after"]
        meant = settable(site.inventory, site.devices, step.data["component"], name)
        for found in disturbed(site, meant.component, name, after):
            if found.name not in step.data.get("disturbs", ()):
                raise RefusedError(
                    f"{plan.id} would disturb {found.name}: {found.how}",
                    hint=f"if that is meant: lumctl device set {meant.component.id} {shlex.quote(meant.text(after))} "
                    f"--even-if-used --target {site.target}",
                )


def _runs_through(circuit: Circuit, component: Component) -> bool:
    if component.part is Part.PORT:
        return circuit.device == component.device and component.number in circuit.ports
    return component.id in {transmitter for _, transmitter in circuit.receivers}


def _of_machine(
    site: Site, component: Component, placed: dict[str, tuple[str, ...]], circuits: tuple[Circuit, ...]
) -> tuple[Disturbed, ...]:
    lanes, accelerators = site.inventory.transponders, site.inventory.accelerators
    ranks = [
        Disturbed(job, f"rank {rank} of {job} runs on {accelerator}")
        for job, ranks in jobs_in(placed).items()
        for rank, accelerator in enumerate(ranks)
        if accelerators[accelerator].host == component.host
    ]
    lost = [
        Disturbed(c.id, f"circuit {c.id} of {c.owner} ends at {component.host}")
        for c in circuits
        if component.host in {lanes[end.transponder].host for end in (c.a, c.b)}
    ]
    return (*ranks, *lost)
