"""Which screen shows what: the one place that knows them all."""

from collections.abc import Callable, Mapping
from functools import partial

from textual.screen import Screen

from lumctl.tui.panes.policies import ASKED
from lumctl.tui.screens.approval import ApprovalScreen
from lumctl.tui.screens.component import AcceleratorScreen, DetailScreen, TransponderScreen
from lumctl.tui.screens.incident import IncidentScreen
from lumctl.tui.screens.list import JobScreen
from lumctl.tui.screens.mesh import MeshScreen
from lumctl.tui.screens.plot import PlotScreen
from lumctl.tui.screens.policy import PolicyScreen
from lumctl.tui.screens.rack import RACK_FACTS, RackScreen
from lumctl.tui.screens.run import RunScreen
from lumctl.tui.screens.runbook import ComparisonScreen, RunbookScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.details import Detail, describe
from lumctl.tui.views.history import History
from lumctl.tui.views.racks import describe_rack


def screen_of(kind: str, key: str, context: ScreenContext) -> Screen[None] | None:
    """The screen of a subject, by its kind (a pane's ``opens``) and its key; ``None`` if there is none."""
    opened = _SCREENS.get(kind)
    return opened(key, context) if opened is not None else None


def _of_component(key: str, context: ScreenContext) -> Screen[None]:
    return _place_of(key, context) or _facts(key, context)


def _facts(key: str, context: ScreenContext) -> Screen[None]:
    describe_it, read = partial(_describe, context, key), partial(context.sources.readings, key)
    return _detail_of(key, context)(key, context.target, describe_it, read, context.marks, context.now)


def _detail_of(key: str, context: ScreenContext) -> type[DetailScreen]:
    """The actions of a component depend on its kind."""
    if (seen := context.seen()) is None:
        return DetailScreen
    inventory = seen.observation.inventory
    if key in inventory.accelerators:
        return AcceleratorScreen
    return TransponderScreen if key in inventory.transponders else DetailScreen


def _rack_facts(key: str, context: ScreenContext) -> Screen[None]:
    def describe_it() -> Detail | None:
        seen = context.seen()
        return describe_rack(seen, key, context.now()) if seen is not None else None

    return DetailScreen(key, context.target, describe_it, lambda _seconds: History(), context.marks, context.now)


def _of_two_runbooks(key: str, context: ScreenContext) -> Screen[None]:
    one, _, other = key.partition(" ")
    return ComparisonScreen(one, other, context)


def _of_policies(key: str, context: ScreenContext) -> Screen[None]:
    rack, _, rest = key.partition("/")
    kind, _, name = rest.partition("/")
    return ApprovalScreen(rack, name, context) if kind == ASKED else PolicyScreen(key, context)


def _place_of(key: str, context: ScreenContext) -> Screen[None] | None:
    """The screen of a subject that is drawn: a mesh, a switch, a rack."""
    if (seen := context.seen()) is None:
        return None
    inventory = seen.observation.inventory
    device = inventory.devices.get(key)
    if device is not None and device.kind.carries_light:
        return MeshScreen(device, context)
    # A rack may share its name with a component, of which more is known.
    named = key in inventory.racks and key not in inventory.hosts and key not in inventory.accelerators
    return RackScreen(key, context) if named else None


def _describe(context: ScreenContext, component: str) -> Detail | None:
    seen = context.seen()
    return describe(seen.observation, component, context.now()) if seen is not None else None


_SCREENS: Mapping[str, Callable[[str, ScreenContext], Screen[None] | None]] = {
    "component": _of_component,
    "facts": _facts,
    RACK_FACTS: _rack_facts,
    "plot": PlotScreen,
    "incident": IncidentScreen,
    "run": RunScreen,
    "job": JobScreen,
    "runbook": RunbookScreen,
    "comparison": _of_two_runbooks,
    "policy": _of_policies,
}
"""What opens each kind."""
