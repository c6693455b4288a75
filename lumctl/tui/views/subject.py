"""The subject of a tool key: the component, incident, or run that is selected on a screen; pure."""

from dataclasses import dataclass

from lumctl.runbook.ticket import runs_about
from lumctl.tui.views.incidents import case_of
from lumctl.tui.views.records import RecordedLook


@dataclass(frozen=True, slots=True)
class WorkSubject:
    """A component by its id, an incident by its key, or a run as ``RACK/ID``; whatever else is empty."""

    component: str = ""
    incident: str = ""
    run: str = ""

    def named(self, seen: RecordedLook) -> str:
        """The component that it is about: of an incident the cause."""
        if self.incident:
            case = case_of(seen, self.incident)
            return case.component if case is not None else self.incident.partition(":")[2]
        return self.component

    def host(self, seen: RecordedLook) -> str | None:
        """The host on which it is: itself, that of an accelerator or a lane, or the first of an incident."""
        case = case_of(seen, self.incident) if self.incident else None
        names = [self.named(seen), *(case.members if case is not None else ())]
        return next((host for name in names if (host := _host_of(seen, name)) is not None), None)

    def last_run(self, seen: RecordedLook) -> str | None:
        """The run that last concerned it, as ``RACK/ID``."""
        if self.run:
            return self.run
        about = runs_about(seen.observation.inventory, self.named(seen), seen.records.runs)
        return next((f"{run.rack}/{run.id}" for run in about), None)


def _host_of(seen: RecordedLook, component: str) -> str | None:
    inventory = seen.observation.inventory
    if component in inventory.accelerators:
        return inventory.accelerators[component].host
    if component in inventory.transponders:
        return inventory.transponders[component].host
    circuit = next((each for each in seen.observation.circuits if each.id == component), None)
    if circuit is not None:
        # The end that hears nothing well is where to look; of two alike the first.
        health = seen.observation.report.circuits.get(component)
        ill = {finding.about for finding in health.findings} if health is not None else set()
        lanes = sorted((end.transponder for end in (circuit.a, circuit.b)), key=lambda lane: lane not in ill)
        return _host_of(seen, lanes[0])
    return component if component in inventory.hosts else None
