"""Every family of a look, in the order in which they are served."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.site.observation import Observation
from lumctl.watch.families.accelerators import accelerators
from lumctl.watch.families.circuits import circuits
from lumctl.watch.families.components import components
from lumctl.watch.families.devices import devices
from lumctl.watch.families.events import events
from lumctl.watch.families.findings import findings
from lumctl.watch.families.hosts import hosts
from lumctl.watch.families.links import links
from lumctl.watch.families.nvlinks import nvlinks
from lumctl.watch.families.ports import ports
from lumctl.watch.families.readable import Readable


def families(look: Observation, *, now: float, ages: bool) -> Iterator[Metric]:
    """All that a look says. ``ages``: of readings, besides their times; a file that is no longer renewed needs none."""
    readable = Readable(look, now)
    yield from components(look, now, ages=ages)
    yield from findings(look)
    yield from hosts(look)
    yield from events(readable)
    yield from accelerators(readable)
    yield from nvlinks(readable)
    yield from links(readable)
    yield from ports(readable)
    yield from devices(readable)
    yield from circuits(look)
