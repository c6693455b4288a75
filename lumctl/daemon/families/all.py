"""Every family of a look, in the order in which they are served."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.accelerators import accelerators
from lumctl.daemon.families.circuits import circuits
from lumctl.daemon.families.components import components
from lumctl.daemon.families.devices import devices
from lumctl.daemon.families.events import events
from lumctl.daemon.families.findings import findings
from lumctl.daemon.families.hosts import hosts
from lumctl.daemon.families.links import links
from lumctl.daemon.families.nvlinks import nvlinks
from lumctl.daemon.families.ports import ports
from lumctl.daemon.families.readable import Readable
from lumctl.site.observation import Observation


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
