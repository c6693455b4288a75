"""The registry of screens by kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from textual.screen import Screen

from lumctl.tui.panes.policies import ASKED
from lumctl.tui.screens.approval import ApprovalScreen
from lumctl.tui.screens.component import AcceleratorScreen, DetailScreen, TransponderScreen
from lumctl.tui.screens.host_output import HostOutputScreen
from lumctl.tui.screens.incident import TIMELINE_KIND, IncidentScreen
from lumctl.tui.screens.list import JobScreen
from lumctl.tui.screens.mesh import MeshScreen
from lumctl.tui.screens.pictures import LossScreen, MatrixScreen, SparesScreen, TimelineScreen
from lumctl.tui.screens.plot import PLOT_KIND, PlotScreen
from lumctl.tui.screens.policy import PolicyScreen
from lumctl.tui.screens.rack import RACK_FACTS, RackScreen
from lumctl.tui.screens.requests import HOST_OUTPUT_KIND, LOSSES_KIND, MATRIX_KIND, SPARES_KIND, TORUS_KIND
from lumctl.tui.screens.run import RunScreen
from lumctl.tui.screens.runbook import ComparisonScreen, RunbookScreen
from lumctl.tui.screens.torus import TorusScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.readers import AnswerReader, scheduler_reader
from lumctl.tui.views.details import describe
from lumctl.tui.views.history import History
from lumctl.tui.views.racks import describe_rack
from lumctl.tui.views.sections import Detail, Fact, Section
from lumctl.tui.views.swap_choice import offers_swap, swaps_of_component


def screen_of(kind: str, key: str, context: ScreenContext) -> Screen[None] | None:
    """The screen for a kind (a pane's ``opens``) and a key; ``None`` if there is none."""
    opened = _SCREENS.get(kind)
    return opened(key, context) if opened is not None else None


def _of_component(key: str, context: ScreenContext) -> Screen[None]:
    return _place_of(key, context) or _facts(key, context)


def _facts(key: str, context: ScreenContext) -> Screen[None]:
    scheduler = scheduler_reader(partial(context.sources.scheduled, key), context.now)
    describe_it, read = partial(_describe, context, key, scheduler), context.sources.readings

    def is_offered() -> bool:
        return (seen := context.seen()) is not None and offers_swap(seen, swaps_of_component(seen.observation, key))

    kind, now = _detail_of(key, context), context.now
    return kind(key, context.target, describe_it, read, context.marks, now, offers_swap=is_offered)


def _detail_of(key: str, context: ScreenContext) -> type[DetailScreen]:
    """The class of a component's screen: keys depend on the kind of component."""
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

    # Only accelerators and transponders have readings over time.
    def read(_component: str, _seconds: float) -> History:
        return History()

    return DetailScreen(key, context.target, describe_it, read, context.marks, context.now)


def _of_two_runbooks(key: str, context: ScreenContext) -> Screen[None]:
    one, _, other = key.partition(" ")
    return ComparisonScreen(one, other, context)


def _of_policies(key: str, context: ScreenContext) -> Screen[None]:
    rack, _, rest = key.partition("/")
    kind, _, name = rest.partition("/")
    return ApprovalScreen(rack, name, context) if kind == ASKED else PolicyScreen(key, context)


def _place_of(key: str, context: ScreenContext) -> Screen[None] | None:
    """The screen with the drawing of a mesh, a switch or a rack; ``None`` for anything else."""
    if (seen := context.seen()) is None:
        return None
    inventory = seen.observation.inventory
    device = inventory.devices.get(key)
    if device is not None and device.kind.carries_light:
        return MeshScreen(device, context)
    # If a host or accelerator has the same name as a rack, its own screen is opened.
    named = key in inventory.racks and key not in inventory.hosts and key not in inventory.accelerators
    return RackScreen(key, context) if named else None


def _describe(context: ScreenContext, component: str, scheduler: AnswerReader[Sequence[Fact]]) -> Detail | None:
    if (seen := context.seen()) is None:
        return None
    detail = describe(seen.observation, component, context.now())
    findings = tuple(replace(each, advice=seen.aimed(each.advice)) for each in detail.findings)
    detail = replace(detail, findings=findings)
    inventory = seen.observation.inventory
    if component not in inventory.accelerators and component not in inventory.hosts:
        return detail
    return replace(detail, sections=(*detail.sections, Section("scheduler", tuple(scheduler.answer()))))


_SCREENS: Mapping[str, Callable[[str, ScreenContext], Screen[None] | None]] = {
    "component": _of_component,
    "facts": _facts,
    RACK_FACTS: _rack_facts,
    PLOT_KIND: lambda key, context: PlotScreen(tuple(key.split()), context),
    "incident": IncidentScreen,
    "run": RunScreen,
    "job": JobScreen,
    "runbook": RunbookScreen,
    "comparison": _of_two_runbooks,
    "policy": _of_policies,
    SPARES_KIND: lambda _key, context: SparesScreen("spares", context),
    MATRIX_KIND: MatrixScreen,
    LOSSES_KIND: LossScreen,
    HOST_OUTPUT_KIND: HostOutputScreen,
    TIMELINE_KIND: TimelineScreen,
    TORUS_KIND: lambda _key, context: TorusScreen(context),
}
"""The function that makes the screen of each kind."""
