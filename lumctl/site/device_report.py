"""What one component says of itself, and what the record says of it: the answer to ``lumctl device show``."""

from dataclasses import replace

from lumctl.inventory.components import Part, find_component, parts_of
from lumctl.site.report_lane import report_power, report_transponder
from lumctl.site.report_light import report_light
from lumctl.site.report_parts import Report, whole
from lumctl.site.roll_call import PATIENCE_S, ask
from lumctl.site.site import Site

__all__ = ["Report", "report"]


def report(site: Site, name: str, *, patience_s: float = PATIENCE_S) -> Report:
    """Ask one component everything. One that does not answer is reported with what the record says of it.

    Whether it answers is told as a roll call tells it: the parts of a chassis or a controller are asked at once, and
    ``patience_s`` seconds are all that everybody together is waited for.

    Raises:
        UsageError: there is no such component.
        UnreachableError: there is no such target: no simulator is running.
    """
    component = find_component(site.inventory, name)
    parts = parts_of(site.inventory, component.id) if component.part is Part.DEVICE else ()
    answer, *said = ask(site, (whole(component), *parts), patience_s=patience_s)
    kind = answer.kind if component.part is Part.DEVICE else component.part.value
    made = Report(component, replace(answer, id=component.id, kind=kind))
    if component.part is Part.TRANSPONDER:
        report_transponder(site, made)
    elif component.part is Part.POWER:
        report_power(site, made)
    elif site.inventory.devices[str(component.device)].kind.carries_light:
        report_light(site, made)
    else:
        made.parts = said
    return made
